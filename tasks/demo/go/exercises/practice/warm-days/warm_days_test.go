package warmdays

import "testing"

func TestCountAbove(t *testing.T) {
	tests := []struct {
		description  string
		temperatures []float64
		limit        float64
		expected     int
	}{
		{"some days are warm", []float64{18.5, 21, 24}, 20, 2},
		{"all days are warm", []float64{30, 31, 32.5}, 29.5, 3},
		{"no day is warm", []float64{3, 7, 5}, 10, 0},
		{"the limit itself does not count", []float64{20, 20.1, 20}, 20, 1},
		{"winter days", []float64{-5, -1.5, 0, 2}, -2, 3},
		{"no days at all", nil, 20, 0},
	}
	for _, test := range tests {
		t.Run(test.description, func(t *testing.T) {
			if actual := CountAbove(test.temperatures, test.limit); actual != test.expected {
				t.Errorf("CountAbove(%v, %v) = %d, expected %d", test.temperatures, test.limit, actual, test.expected)
			}
		})
	}
}
