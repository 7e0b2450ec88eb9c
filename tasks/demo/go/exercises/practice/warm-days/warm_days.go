package warmdays

// CountAbove returns how many of the temperatures are greater than the limit.
func CountAbove(temperatures []float64, limit float64) int {
	panic("Write the function CountAbove")
}
