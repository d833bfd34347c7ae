//! What is missing from a trace, or cannot be read, is counted and named.

use std::io::{Cursor, Read, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use placewise_trace::{Event, FirstMalformed, Losses, Malformed, TraceError, TraceReader};

const LINE: &str =
    "<idle>-0 [003] d..2. 12.000034: sched_waking: comm=receiver pid=43 prio=120 target_cpu=009\n";

fn at(micros: u32) -> String {
    LINE.replace("000034", &format!("{micros:06}"))
}

fn reader(bytes: impl Into<Vec<u8>>) -> TraceReader {
    TraceReader::from_reader("trace", Cursor::new(bytes.into())).unwrap()
}

/// The number of records, and what is lost.
fn read(bytes: impl Into<Vec<u8>>) -> (usize, Losses) {
    let mut reader = reader(bytes);
    let mut records = 0;
    while reader.next_record().unwrap().is_some() {
        records += 1;
    }
    (records, reader.losses().clone())
}

fn refusal(bytes: impl Into<Vec<u8>>) -> String {
    refusal_of(Cursor::new(bytes.into()))
}

fn refusal_of(text: impl Read + Send + 'static) -> String {
    let reader = TraceReader::from_reader("trace", text);
    let error = match reader {
        Ok(mut reader) => loop {
            match reader.next_record() {
                Ok(record) => assert!(record.is_some(), "expected an error"),
                Err(error) => break error,
            }
        },
        Err(error) => error,
    };
    let text = error.to_string();
    assert!(!text.contains('\n') && text.starts_with("trace: "), "{text}");
    text
}

fn malformed(line: u64, reason: Malformed) -> Losses {
    let first_malformed = Some(FirstMalformed { line, reason });
    Losses { malformed_lines: 1, first_malformed, ..Losses::default() }
}

#[test]
fn marks_of_lost_events_come_in_their_place() {
    let mut reader = reader(format!(
        "{LINE}CPU:3 [LOST 42 EVENTS]\n##### CPU 7 buffer started ####\nCPU:5 [LOST EVENTS]\n{LINE}"
    ));
    assert!(matches!(reader.next_record().unwrap().unwrap().event, Event::Waking { .. }));
    for (cpu, count) in [(3, 42), (7, 0), (5, 0)] {
        let record = reader.next_record().unwrap().unwrap();
        assert_eq!((record.cpu, record.event), (cpu, Event::LostEvents { count }));
        assert_eq!(record.time_ns, 12_000_034_000);
    }
    assert!(matches!(reader.next_record().unwrap().unwrap().event, Event::Waking { .. }));
    assert_eq!((reader.losses().lost_events, reader.losses().gaps), (42, 3));
}

#[test]
fn comments_may_quote_events_and_marks() {
    let quotes = format!("# {LINE}#{LINE}# CPU:3 [LOST 42 EVENTS]\n");
    assert_eq!(read(format!("{quotes}{LINE}{quotes}")), (1, Losses::default()));
}

#[test]
fn overwritten_events_by_either_header() {
    for (header, overrun) in [
        ("# entries-in-buffer/entries-written: 100/250   #P:16", 150),
        ("# entries-in-buffer/entries-written: 250/250   #P:16", 0),
        ("# entries-in-buffer/entries-written: 0/0   #P:16\n# overrun: 7", 7),
        ("# overrun: 7\n# entries-in-buffer/entries-written: 0/9   #P:16", 9),
        ("# lost: cpu 3 events 12\n# lost: cpu 4 events 1", 13),
    ] {
        assert_eq!(read(format!("{header}\n{LINE}")).1, Losses { overrun, ..Losses::default() });
        assert_eq!(read(format!("{LINE}{header}\n")).1, Losses { overrun, ..Losses::default() });
    }
}

#[test]
fn malformed_lines_are_counted_and_the_first_is_named() {
    let prefix = "<idle>-0 [003] d..2. 12.000034: ";
    for (line, reason) in [
        ("hello, world".into(), Malformed::Prefix),
        ("CPU 2 is full".into(), Malformed::Prefix),
        ("<idle>-0 [003] d..2. 31601390303756: sched_waking: x".into(), Malformed::Prefix),
        ("<idle>-0 [003] d..2. 12.00: sched_waking: x".into(), Malformed::Prefix),
        (format!("<idle>-99999999999 {}", &LINE[9..91]), Malformed::Prefix),
        (format!("<idle>-0 [003] d..2. 99999999999.000000{}", &LINE[30..91]), Malformed::Prefix),
        (format!("{prefix}sched_waking: pid=43 prio=120 target_cpu=9"), Malformed::Field(" pid=")),
        (format!("{prefix}sched_waking: comm=a pid=43 prio=120"), Malformed::Field(" target_cpu=")),
        (
            format!("{prefix}sched_waking: comm=a pid=99999999999 prio=1 target_cpu=9"),
            Malformed::Number(" pid="),
        ),
        (
            format!("{prefix}sched_waking: comm=a pid=-1 prio=1 target_cpu=9"),
            Malformed::Number(" pid="),
        ),
        (
            format!("{prefix}sched_waking: comm=a pid=1 prio= target_cpu=9"),
            Malformed::Number(" prio="),
        ),
        (
            format!("{prefix}sched_waking: comm=a pid=1 prio=1 target_cpu=-1"),
            Malformed::Number(" target_cpu="),
        ),
        (
            format!("{prefix}sched_switch: prev_comm=a next_comm=b next_pid=1 next_prio=1"),
            Malformed::Field("prev_state=S ==> next_comm="),
        ),
        (
            format!("{prefix}sched_switch: a:1 [120] ==> b:2 [120]"),
            Malformed::Field("prev:pid [prio] state ==> next:pid [prio]"),
        ),
    ] {
        let text = format!("{LINE}{line}\n{LINE}");
        assert_eq!(read(text), (2, malformed(2, reason)), "{line}");
    }
    let (_, losses) = read(format!("{LINE}x\ny\n"));
    assert_eq!(losses, Losses { malformed_lines: 2, ..malformed(2, Malformed::Prefix) });
}

#[test]
fn malformed_decisions_say_what_was_expected() {
    let (_, losses) =
        read(format!("{LINE}a-1 [003] d..2. 12.000034: placewise_select_task_rq: x=1\n"));
    let reason = losses.first_malformed.unwrap().reason;
    assert!(reason.to_string().starts_with("placewise_select_task_rq: expected "), "{reason}");
}

#[test]
fn a_last_line_without_end_gives_no_record() {
    let expected = Losses { truncated_last_line: true, ..Losses::default() };
    for length in 1..LINE.len() {
        assert_eq!(read(format!("{LINE}{}", &LINE[..length])), (1, expected.clone()));
    }
    assert_eq!(read(LINE), (1, Losses::default()));
}

fn gzipped(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

fn many_lines() -> String {
    (0..5000).map(at).collect()
}

#[test]
fn compressed_traces_are_recognised_by_their_first_bytes() {
    let text = many_lines();
    assert_eq!(read(gzipped(&text)), (5000, Losses::default()));
    assert_eq!(read(zstd::encode_all(text.as_bytes(), 3).unwrap()), (5000, Losses::default()));
    // Parts that were compressed one by one.
    assert_eq!(read([gzipped(&text), gzipped(&at(5000))].concat()), (5001, Losses::default()));
}

#[test]
fn compressed_traces_may_end_too_early() {
    let text = many_lines();
    for whole in [gzipped(&text), zstd::encode_all(text.as_bytes(), 3).unwrap()] {
        let (records, losses) = read(&whole[..whole.len() - 5]);
        assert!(losses.truncated_file);
        assert!(records > 0 && records <= 5000, "{records}");
        assert_eq!(losses.malformed_lines, 0);
    }
}

#[test]
fn damaged_compressed_traces_are_refused_with_the_line() {
    let mut damaged = gzipped(&many_lines());
    let length = damaged.len();
    damaged[length - 6] ^= 1;
    let refusal = refusal(damaged);
    assert!(refusal.starts_with("trace: line 5001: cannot read on: "), "{refusal}");
}

#[test]
fn steps_of_the_clock_are_passed_on_and_counted() {
    let mut reader = reader([at(50), at(40), at(45), at(10), at(60)].concat());
    for micros in [50, 40, 45, 10, 60] {
        let record = reader.next_record().unwrap().unwrap();
        assert_eq!(record.time_ns, 12_000_000_000 + 1000 * micros);
    }
    assert_eq!(reader.next_record().unwrap(), None);
    let expected = Losses { clock_steps: 2, largest_clock_step_ns: 35_000, ..Losses::default() };
    assert_eq!(reader.losses(), &expected);
}

#[test]
fn cpus_without_room_are_left_out() {
    let mut text = String::new();
    for cpu in 0..10_000 {
        text += &LINE.replace("[003]", &format!("[{cpu:03}]"));
    }
    assert_eq!(read(text), (1024, Losses { cpus_out_of_range: 8976, ..Losses::default() }));
    let expected = (1, Losses { cpus_out_of_range: 1, ..Losses::default() });
    for line in [
        LINE.replace("=009", "=1024"),
        LINE.replace("=009", "=9999999999"),
        LINE.replace("[003]", "[99999999999999999999]"),
        "CPU:1024 [LOST 7 EVENTS]\n".to_owned(),
        "##### CPU 99999999999999999999 buffer started ####\n".to_owned(),
        "a-1 [003] ..... 1.000000: sched_migrate_task: comm=a pid=1 prio=1 orig_cpu=1024 dest_cpu=0\n"
            .to_owned(),
    ] {
        assert_eq!(read(format!("{LINE}{line}")), expected, "{line}");
    }
}

#[test]
fn bytes_that_are_not_utf8_become_question_marks() {
    let mut text = LINE.replace("receiver", "caf#").into_bytes();
    // The first byte of a character of two, where the comm was cut.
    let cut = text.iter().position(|&byte| byte == b'#').unwrap();
    text[cut] = 0xc3;
    let mut reader = reader(text);
    let record = reader.next_record().unwrap().unwrap();
    assert!(matches!(record.event, Event::Waking { comm: "caf?", pid: 43, .. }), "{record:?}");
    assert_eq!(reader.losses().non_utf8_lines, 1);
    assert_eq!(read(LINE.replace("receiver", "café")), (1, Losses::default()));
}

#[test]
fn lines_end_as_consoles_end_them() {
    assert_eq!(read(LINE.replace('\n', "\r\n")), (1, Losses::default()));
}

#[test]
fn lines_too_long_to_hold_are_passed_over() {
    let long = std::io::repeat(b'x').take(1 << 20);
    let text = Cursor::new(LINE).chain(long).chain(Cursor::new(format!("\n{LINE}")));
    let mut reader = TraceReader::from_reader("trace", text).unwrap();
    assert!(reader.next_record().unwrap().is_some());
    assert!(reader.next_record().unwrap().is_some());
    assert_eq!(reader.next_record().unwrap(), None);
    assert_eq!(reader.losses(), &malformed(2, Malformed::TooLong));
}

#[test]
fn a_last_line_too_long_to_hold_is_noticed_whatever_its_length() {
    let expected = Losses { truncated_last_line: true, ..Losses::default() };
    for length in [128 * 1024 - 1, 128 * 1024, 128 * 1024 + 1, 256 * 1024] {
        assert_eq!(read(format!("{LINE}{}", "x".repeat(length))), (1, expected.clone()));
    }
}

/// The same again and again; whoever reads too much of it fails.
struct Endless(std::iter::Cycle<std::slice::Iter<'static, u8>>, usize);

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        buffer.iter_mut().for_each(|byte| *byte = *self.0.next().unwrap());
        self.1 += buffer.len();
        assert!(self.1 < 1 << 27, "it reads on and on");
        Ok(buffer.len())
    }
}

/// Why text is refused that goes on with `pattern` behind `start` for ever.
fn refusal_of_endless(start: &'static str, pattern: &'static [u8]) -> String {
    refusal_of(Cursor::new(start).chain(Endless(pattern.iter().cycle(), 0)))
}

#[test]
fn a_line_without_end_is_refused() {
    let first = refusal_of_endless("", b"a");
    assert!(first.contains("line 1: longer than 32 MiB, expected text of ftrace"), "{first}");
    let second = refusal_of_endless(LINE, b"\0");
    assert!(second.contains("line 2: longer than 32 MiB"), "{second}");
    let bomb = zstd::encode_all(std::io::repeat(b'a').take(1 << 30), 1).unwrap();
    assert!(bomb.len() < 1 << 17);
    assert!(refusal(bomb).contains("line 1: longer than 32 MiB"));
}

#[test]
fn text_without_events_is_given_up_soon() {
    let long = "x".repeat(100);
    for line in [
        format!("{long}\n"),
        format!("# {long}\n"),
        format!("# task 15 comm={long} policy=SCHED_FIFO cpus=0\n"),
        format!("a-1 [000] d..2. 1.000000: irq_entry: {long}\n"),
    ] {
        let refusal = refusal_of_endless("", line.leak().as_bytes());
        assert!(refusal.contains("no scheduler event in the first 32 MiB"), "{refusal}");
        assert!(refusal.contains("with sched_switch and sched_wakeup"), "{refusal}");
    }
    // Behind an event it may go on: what another tracer writes is none of ours.
    let other = format!("a-1 [000] d..2. 1.000000: f: {long}\n").repeat(1 << 18);
    assert!(other.len() > 32 << 20);
    let expected = Losses { unknown_events: 1 << 18, ..Losses::default() };
    assert_eq!(read(format!("{LINE}{other}{LINE}")), (2, expected));
}

#[test]
fn byte_order_marks_are_no_part_of_the_text() {
    let header = "# kernel: 6.12.0\n";
    let mut marked = reader(format!("\u{feff}{header}{LINE}"));
    assert_eq!(marked.header().kernel.as_deref(), Some("6.12.0"));
    assert!(marked.next_record().unwrap().is_some());
    assert_eq!(read(gzipped(&format!("\u{feff}{LINE}"))), (1, Losses::default()));
    let text = format!("\u{feff}{LINE}");
    let mut utf16: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert!(refusal(utf16.clone()).contains("`iconv -f UTF-16 -t UTF-8`"), "little endian");
    utf16.chunks_exact_mut(2).for_each(|unit| unit.swap(0, 1));
    assert!(refusal(utf16).contains("`iconv -f UTF-16 -t UTF-8`"), "big endian");
}

#[test]
fn a_second_trace_is_refused_where_it_begins() {
    let trace = |seconds: u32| {
        let second = |text: String| text.replace("12.0", &format!("{seconds}.0"));
        format!("{}{}", second(at(0)), second(at(5_000)))
    };
    let header = "# tracer: nop\n#\n# kernel: 6.12.0\n";
    for (text, line, sign) in [
        (format!("{header}{}{header}{}", trace(12), trace(14)), 6, "a header behind events"),
        (format!("{}# kernel: 6.1.0\n{}", trace(12), trace(14)), 3, "a header behind events"),
        (format!("{}# cpu 0 core=0 llc=0 package=0\n", trace(12)), 3, "a header behind events"),
        (trace(12).repeat(2), 3, "from 12.005000 s to 12.000000 s on CPU 3"),
        // Recorded earlier, and on other CPUs.
        (
            trace(12) + &trace(10).replace("[003]", "[004]"),
            3,
            "from 12.005000 s to 10.000000 s on CPU 4",
        ),
    ] {
        let refusal = refusal(text);
        assert!(refusal.starts_with(&format!("trace: line {line}: ")), "{refusal}");
        assert!(refusal.contains(sign) && refusal.contains("second trace"), "{refusal}");
        assert!(refusal.contains(&format!("tail -n +{line}")), "{refusal}");
    }
    let footer = "# overrun: 3\n# lost: cpu 3 events 3\n# hello: world\n";
    assert_eq!(read(trace(12) + footer + &trace(13)).0, 4, "these stand behind events");
}

#[test]
fn wrong_lines_of_a_header_do_not_pile_up() {
    let reader = reader("# hz: many\n".repeat(100_000) + LINE);
    assert_eq!(reader.header().problems.len(), 100);
}

#[test]
fn inputs_without_events_are_refused() {
    for (bytes, expected) in [
        (b"".to_vec(), "no scheduler event in 0 lines, expected text of ftrace"),
        (
            b"a\nb\nc\n".to_vec(),
            "3 lines, expected text of ftrace, `perf script` or `trace-cmd report` with sched_switch and sched_wakeup; line 1: expected `task-pid",
        ),
        (vec![0, 159, 146, 150, 10, 7], "no scheduler event"),
        (b"CPU:3 [LOST 42 EVENTS]\n".to_vec(), "no scheduler event in 1 lines"),
        (gzipped(""), "no scheduler event in 0 lines"),
        (b"\xfd7zXZ\0\0\0".to_vec(), "compressed with xz, which is not read: decompress it first"),
        (b"BZh91AY&SY".to_vec(), "compressed with bzip2"),
        (b"PERFILE2 ..".to_vec(), "give the output of `perf script`"),
        (b"\x17\x08\x44tracing6\0".to_vec(), "can only be read by name"),
        (LINE.replace("sched_waking", "irq_entry").into_bytes(), "no scheduler event in 1 lines"),
    ] {
        let refusal = refusal(bytes);
        assert!(refusal.contains(expected), "{refusal}");
    }
}

#[test]
fn files_are_opened_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace.txt");
    // The name does not say that it is compressed.
    std::fs::write(&path, gzipped(LINE)).unwrap();
    let mut reader = TraceReader::open(&path).unwrap();
    assert!(reader.next_record().unwrap().is_some());
    assert_eq!(reader.next_record().unwrap(), None);
}

#[test]
fn files_that_are_not_there_are_named() {
    let error = TraceReader::open(Path::new("/nonexistent/trace")).err().unwrap();
    assert!(matches!(error, TraceError::Open { .. }));
    assert!(error.to_string().starts_with("/nonexistent/trace: cannot open: No such file"));
}

#[test]
fn a_trace_dat_goes_through_trace_cmd() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("recording");
    std::fs::write(&path, b"\x17\x08\x44tracing and no more").unwrap();
    let error = match TraceReader::open(&path) {
        Ok(mut reader) => reader.next_record().map(|_| ()).unwrap_err(),
        Err(error) => error,
    };
    // Without trace-cmd, and with one that refuses the file.
    let text = error.to_string();
    assert!(
        text.contains("install trace-cmd") || text.contains("`trace-cmd report` failed"),
        "{text}"
    );
}
