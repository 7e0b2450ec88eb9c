use ring_log::{LogError, RingLog};

fn filled(capacity: usize, lines: &[&str]) -> RingLog {
    let mut log = RingLog::new(capacity).expect("a log with room");
    for line in lines {
        log.push(line).expect("a line which is not empty");
    }
    log
}

#[test]
fn lines_come_back_oldest_first() {
    let log = filled(5, &["boot", "login", "logout"]);
    assert_eq!(log.lines(), ["boot", "login", "logout"]);
}

#[test]
#[ignore]
fn a_log_without_room_is_refused() {
    assert_eq!(RingLog::new(0).err(), Some(LogError::NoRoom));
    assert!(RingLog::new(1).is_ok());
}

#[test]
#[ignore]
fn a_new_log_is_empty() {
    let log = filled(3, &[]);
    assert!(log.lines().is_empty());
    assert_eq!((log.pushed(), log.dropped()), (0, 0));
    assert_eq!(log.latest(""), None);
}

#[test]
#[ignore]
fn repeats_in_a_row_become_one_entry() {
    let log = filled(2, &["tick", "tick", "tock", "tock", "tock"]);
    assert_eq!(log.lines(), ["tick (x2)", "tock (x3)"]);
    assert_eq!(log.dropped(), 0);
}

#[test]
#[ignore]
fn repeats_which_are_not_in_a_row_stay_apart() {
    let log = filled(9, &["tick", "tock", "tick"]);
    assert_eq!(log.lines(), ["tick", "tock", "tick"]);
}

#[test]
#[ignore]
fn the_oldest_entry_is_dropped_with_all_its_repeats() {
    let log = filled(2, &["a", "a", "a", "b", "c", "d", "d"]);
    assert_eq!(log.lines(), ["c", "d (x2)"]);
    assert_eq!((log.pushed(), log.dropped()), (7, 4));
}

#[test]
#[ignore]
fn white_space_at_the_end_is_removed() {
    let log = filled(3, &["  disk full\n", "  disk full \t", "disk full"]);
    assert_eq!(log.lines(), ["  disk full (x2)", "disk full"]);
}

#[test]
#[ignore]
fn an_empty_line_is_refused_and_changes_nothing() {
    let mut log = filled(1, &["boot"]);
    assert_eq!(log.push(""), Err(LogError::EmptyLine));
    assert_eq!(log.push(" \n"), Err(LogError::EmptyLine));
    assert_eq!(log.lines(), ["boot"]);
    assert_eq!((log.pushed(), log.dropped()), (1, 0));
}

#[test]
#[ignore]
fn the_latest_line_is_found_by_its_start() {
    let log = filled(3, &["net up", "disk ok", "disk full", "disk full", "halt"]);
    assert_eq!(log.latest("disk"), Some("disk full"));
    assert_eq!(log.latest("disk o"), Some("disk ok"));
    assert_eq!(log.latest("full"), None);
    assert_eq!(log.latest("net"), None);
    assert_eq!(log.latest(""), Some("halt"));
}
