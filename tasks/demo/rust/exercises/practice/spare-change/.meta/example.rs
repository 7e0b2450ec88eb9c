pub fn change(paid: u32, price: u32) -> Option<u32> {
    paid.checked_sub(price)
}
