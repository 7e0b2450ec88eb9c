package warmdays

// CountAbove returns how many of the temperatures are greater than the limit.
func CountAbove(temperatures []float64, limit float64) int {
	count := 0
	for _, temperature := range temperatures {
		if temperature > limit {
			count++
		}
	}
	return count
}
