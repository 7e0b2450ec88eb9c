package swimlanes

import (
	"fmt"
	"sort"
)

// Assign gives a lane, numbered from 1, to each booking.
func Assign(bookings []Booking, lanes int) ([]int, error) {
	order := make([]int, len(bookings))
	for i, booking := range bookings {
		if booking.End <= booking.Start {
			return nil, fmt.Errorf("%s: %w", booking.Swimmer, ErrBadTime)
		}
		order[i] = i
	}
	sort.SliceStable(order, func(a, b int) bool {
		return bookings[order[a]].Start < bookings[order[b]].Start
	})
	last := make([]*Booking, lanes)
	result := make([]int, len(bookings))
	for _, i := range order {
		lane := firstFree(last, bookings[i].Start)
		if lane < 0 {
			return nil, fmt.Errorf("%s: %w", bookings[i].Swimmer, ErrNoLane)
		}
		last[lane] = &bookings[i]
		result[i] = lane + 1
	}
	return result, nil
}

// firstFree returns the index of the first lane which is free at that minute, or -1.
func firstFree(last []*Booking, minute int) int {
	for lane, booking := range last {
		if booking == nil || booking.End <= minute {
			return lane
		}
	}
	return -1
}

// Busiest returns the first minute at which the most bookings go on, and how many those are.
func Busiest(bookings []Booking) (minute, count int) {
	for _, candidate := range bookings {
		start, active := candidate.Start, 0
		for _, booking := range bookings {
			if booking.Start <= start && start < booking.End {
				active++
			}
		}
		if active > count || (active == count && start < minute) {
			minute, count = start, active
		}
	}
	return minute, count
}
