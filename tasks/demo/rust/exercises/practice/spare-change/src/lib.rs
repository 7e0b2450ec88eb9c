pub fn change(paid: u32, price: u32) -> Option<u32> {
    todo!("{paid} is paid for a price of {price}");
}
