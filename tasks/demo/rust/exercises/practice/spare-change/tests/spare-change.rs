use spare_change::change;

#[test]
fn too_much_money_gives_change() {
    assert_eq!(change(10, 7), Some(3));
    assert_eq!(change(500, 1), Some(499));
}

#[test]
fn the_exact_price_gives_no_change() {
    assert_eq!(change(5, 5), Some(0));
}

#[test]
fn too_little_money_is_refused() {
    assert_eq!(change(5, 8), None);
    assert_eq!(change(0, 1), None);
}

#[test]
fn a_gift_returns_all_the_money() {
    assert_eq!(change(20, 0), Some(20));
    assert_eq!(change(0, 0), Some(0));
}

#[test]
fn large_sums_are_no_problem() {
    assert_eq!(change(u32::MAX, 1), Some(u32::MAX - 1));
    assert_eq!(change(1, u32::MAX), None);
}
