//! The machines that come with Placewise, as the text of their files.

macro_rules! preset_file {
    ($name:literal) => {
        ($name, include_str!(concat!("../../../../machines/", $name, ".toml")))
    };
}

/// Name and text of the machine files that come with Placewise.
pub(crate) const PRESETS: &[(&str, &str)] = &[
    preset_file!("zen3-2s-nps1"),
    preset_file!("zen3-2s-nps2"),
    preset_file!("zen3-2s-nps4"),
    preset_file!("epyc-9654-2s"),
    preset_file!("icx-2s"),
    preset_file!("spr-112"),
    preset_file!("xeon-4n80"),
    preset_file!("arm64-8"),
    preset_file!("arm64-224"),
    preset_file!("uma-8"),
    preset_file!("x86-12"),
    preset_file!("adl-24"),
    preset_file!("hikey960"),
    preset_file!("sm8250"),
    preset_file!("spr-2s-224"),
    preset_file!("spr-2s-224-llcsplit4"),
    preset_file!("spr-2s-120"),
    preset_file!("spr-2s-240"),
    preset_file!("milan-2n128"),
    preset_file!("milan-4n128"),
    preset_file!("clx-2s-8260-snc-off"),
    preset_file!("clx-2s-8260-snc-on"),
    preset_file!("zen4-2s-128c"),
    preset_file!("kunpeng920"),
];

/// The text of a preset's file, with the preset's own name.
pub(crate) fn preset(name: &str) -> Option<(&'static str, &'static str)> {
    PRESETS.iter().copied().find(|(preset, _)| *preset == name)
}
