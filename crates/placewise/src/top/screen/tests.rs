use placewise_audit::Meter;
use placewise_trace::TraceReader;
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::*;

fn machine() -> Machine {
    placewise_machine::load("pack:1 l3:2 core:2 pu:2").unwrap()
}

/// The frame of a trace: `a` runs on CPU 0 throughout, and wakes `name` on CPU 4.
fn frame(machine: &Machine, name: &str, (width, height): (u16, u16)) -> Vec<String> {
    let text = format!(
        "<idle>-0 [000] d..2. 1.000000: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=a next_pid=10 next_prio=120
a-10 [000] d..2. 1.000100: sched_waking: comm={name} pid=11 prio=120 target_cpu=001
a-10 [000] d..2. 1.000110: sched_migrate_task: comm={name} pid=11 prio=120 orig_cpu=1 dest_cpu=4
a-10 [000] d..2. 1.000120: sched_wakeup: comm={name} pid=11 prio=120 target_cpu=004
<idle>-0 [004] d..2. 1.000500: sched_switch: prev_comm=swapper/4 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm={name} next_pid=11 next_prio=120
{name}-11 [004] d..2. 1.001000: sched_switch: prev_comm={name} prev_pid=11 prev_prio=120 prev_state=S ==> next_comm=swapper/4 next_pid=0 next_prio=120
"
    );
    let mut reader = TraceReader::from_reader("trace", std::io::Cursor::new(text)).unwrap();
    let mut meter = Meter::new(machine).unwrap();
    while let Some(record) = reader.next_record().unwrap() {
        meter.read(&record);
    }
    meter.end();
    let (watched, own_share) = (Some(0.631), Some(0.0123));
    let status = Status { source: "a\x1b[2Jtrace".into(), watched, own_share, keys: "q: quit" };
    let moment = meter.moment();
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, machine, &status, &moment)).unwrap();
    let buffer = terminal.backend().buffer();
    let line = |cells: &[ratatui::buffer::Cell]| cells.iter().map(|cell| cell.symbol()).collect();
    buffer.content.chunks(usize::from(width)).map(line).collect()
}

fn line<'f>(frame: &'f [String], with: &str) -> &'f str {
    let found = frame.iter().find(|line| line.contains(with));
    found.unwrap_or_else(|| panic!("no {with} in\n{}", frame.join("\n")))
}

#[test]
fn every_panel_says_what_happened() {
    for size in [(80, 24), (200, 60)] {
        let frame = frame(&machine(), "b", size);
        assert!(line(&frame, "8 CPUs, 2 LLCs").contains(r"a\u{1b}[2Jtrace"));
        assert!(
            line(&frame, "own CPU").contains("6 events  0 lost  watched 63.1 %  own CPU 1.2 %")
        );
        // a all the time, b for half of it.
        assert!(line(&frame, "LLC  0").contains("25.0 % busy    3 idle    0 queued  █···"));
        assert!(line(&frame, "LLC  1").contains("12.5 % busy    4 idle    0 queued  ▄···"));
        let words = |with: &str| {
            let line = line(&frame, with).trim_matches(['│', ' ']);
            line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        };
        let other = words("│other LLC");
        assert_eq!(other[..4], ["other", "LLC", "1", "100.0"]);
        assert_eq!(other[6], "400.0", "the longest, from sched_waking on");
        assert_eq!(words("│b "), ["b", "1", "0.400", "400.0", "400.0", "11", "4", "0.500"]);
    }
}

#[test]
fn a_name_cannot_act_on_the_terminal() {
    let frame = frame(&machine(), "\u{9b}2J\u{202e}b", (80, 24));
    let acts = |c: char| c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c);
    assert!(!frame.concat().chars().any(acts));
    line(&frame, r"│\u{9b}2J\u");
}

#[test]
fn a_large_machine_fits_into_a_small_window() {
    let machine = placewise_machine::load("pack:2 l3:24 core:4 pu:2").unwrap();
    let small = frame(&machine, "b", (80, 24));
    line(&small, "LLCs more: make the window larger");
    line(&small, "who waited longest");
    let large = frame(&machine, "b", (200, 60));
    line(&large, "LLC 47");
    line(&large, "who waited longest");
}
