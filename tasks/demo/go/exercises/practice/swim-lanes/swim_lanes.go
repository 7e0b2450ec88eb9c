package swimlanes

// Assign gives a lane, numbered from 1, to each booking.
func Assign(bookings []Booking, lanes int) ([]int, error) {
	panic("Write the function Assign")
}

// Busiest returns the first minute at which the most bookings go on, and how many those are.
func Busiest(bookings []Booking) (minute, count int) {
	panic("Write the function Busiest")
}
