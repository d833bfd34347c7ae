//! What the BPF programs and the loader both read or write, translated from the C that declares it.

#![allow(dead_code, unused_parens)] // fields that only programs use; expressions as in C

use placewise_policy::*;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

include!(concat!(env!("OUT_DIR"), "/shared.rs"));

#[cfg(all(test, bpf_object))]
mod tests {
    use libbpf_rs::btf::types::{MemberAttr, Struct};
    use libbpf_rs::btf::{Btf, HasSize};

    use super::*;
    use crate::object::built;

    include!(concat!(env!("OUT_DIR"), "/rust_layout.rs"));

    /// The size of a struct, or where `struct.field` is in it.
    fn in_bpf(btf: &Btf<'_>, name: &str) -> Option<usize> {
        let (name, field) = name.split_once('.').unwrap_or((name, ""));
        let declared: Struct<'_> = btf.type_by_name(name)?;
        if field.is_empty() {
            return Some(declared.size());
        }
        let member = declared.iter().find(|member| member.name.is_some_and(|its| its == field))?;
        match member.attr {
            MemberAttr::Normal { offset } => Some(offset as usize / 8),
            MemberAttr::BitField { .. } => None,
        }
    }

    #[test]
    fn rust_and_bpf_agree_on_every_offset() {
        let objects = built().expect("the objects are built");
        let objects = [objects.policy, objects.scheduler];
        let btfs = objects.map(|object| Btf::from_raw("object", object).unwrap().expect("BTF"));
        let mut compared = Vec::new();
        for &(name, rust) in RUST_LAYOUT {
            if let Some(bpf) = btfs.iter().find_map(|btf| in_bpf(btf, name)) {
                assert_eq!(bpf, rust, "{name}");
                compared.push(name);
            }
        }
        // BTF leaves out what is in an arena alone.
        for name in ["call.walk", "exit_record.dump", "hint_entry.class", "sched_ext_ops.name"] {
            assert!(compared.contains(&name), "{name} is not in BTF: {compared:?}");
        }
    }
}
