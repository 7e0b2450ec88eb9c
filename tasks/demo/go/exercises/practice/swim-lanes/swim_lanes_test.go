package swimlanes

import (
	"errors"
	"reflect"
	"testing"
)

func TestAssign(t *testing.T) {
	tests := []struct {
		description string
		bookings    []Booking
		lanes       int
		expected    []int
	}{
		{"one after the other", []Booking{{"Ada", 60, 120}, {"Bo", 120, 180}}, 1, []int{1, 1}},
		{"at the same time", []Booking{{"Ada", 60, 120}, {"Bo", 60, 90}, {"Cy", 60, 70}}, 3, []int{1, 2, 3}},
		{"list not in order of time", []Booking{{"Ada", 200, 300}, {"Bo", 10, 250}, {"Cy", 20, 30}}, 2, []int{2, 1, 2}},
		{"lowest free lane", []Booking{{"Ada", 0, 50}, {"Bo", 0, 90}, {"Cy", 10, 40}, {"Di", 60, 70}}, 4, []int{1, 2, 3, 1}},
		{"a long booking is remembered", []Booking{{"Ada", 0, 500}, {"Bo", 5, 10}, {"Cy", 10, 20}, {"Di", 499, 501}}, 2, []int{1, 2, 2, 2}},
	}
	for _, test := range tests {
		t.Run(test.description, func(t *testing.T) {
			actual, err := Assign(test.bookings, test.lanes)
			if err != nil {
				t.Fatalf("unexpected error: %v", err)
			}
			if !reflect.DeepEqual(actual, test.expected) {
				t.Errorf("got %v, expected %v", actual, test.expected)
			}
		})
	}
}

func TestAssignErrors(t *testing.T) {
	tests := []struct {
		description string
		bookings    []Booking
		lanes       int
		wrapped     error
		text        string
	}{
		{"all lanes taken", []Booking{{"Ada", 60, 120}, {"Bo", 119, 150}}, 1, ErrNoLane, "Bo: no lane is free"},
		{"first to be served", []Booking{{"Ada", 30, 40}, {"Bo", 20, 40}, {"Cy", 10, 40}}, 1, ErrNoLane, "Bo: no lane is free"},
		{"a pool without lanes", []Booking{{"Ada", 1, 2}}, 0, ErrNoLane, "Ada: no lane is free"},
		{"no time at all", []Booking{{"Ada", 60, 60}}, 1, ErrBadTime, "Ada: booking must end after it starts"},
		{"times before lanes", []Booking{{"Ada", 0, 9}, {"Bo", 1, 9}, {"Cy", 9, 8}, {"Di", 5, 4}}, 1, ErrBadTime, "Cy: booking must end after it starts"},
	}
	for _, test := range tests {
		actual, err := Assign(test.bookings, test.lanes)
		if !errors.Is(err, test.wrapped) {
			t.Fatalf("%s: got error %v, expected one which wraps %q", test.description, err, test.wrapped)
		}
		if err.Error() != test.text {
			t.Errorf("%s: got the text %q, expected %q", test.description, err, test.text)
		}
		if actual != nil {
			t.Errorf("%s: got %v beside the error, expected nil", test.description, actual)
		}
	}
}

func TestAssignLeavesItsArgumentAlone(t *testing.T) {
	bookings := []Booking{{"Ada", 50, 60}, {"Bo", 10, 20}}
	if _, err := Assign(bookings, 1); err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
	if expected := []Booking{{"Ada", 50, 60}, {"Bo", 10, 20}}; !reflect.DeepEqual(bookings, expected) {
		t.Errorf("the bookings are now %v, expected %v", bookings, expected)
	}
}

func TestBusiest(t *testing.T) {
	tests := []struct {
		description string
		bookings    []Booking
		minute      int
		count       int
	}{
		{"no bookings", nil, 0, 0},
		{"a single booking", []Booking{{"Ada", 60, 120}}, 60, 1},
		{"overlapping bookings", []Booking{{"Ada", 60, 120}, {"Bo", 90, 150}, {"Cy", 120, 180}}, 90, 2},
		{"the first of several such times", []Booking{{"Ada", 70, 80}, {"Bo", 75, 79}, {"Cy", 10, 30}, {"Di", 20, 25}}, 20, 2},
		{"an end is not included", []Booking{{"Ada", 10, 20}, {"Bo", 20, 30}}, 10, 1},
	}
	for _, test := range tests {
		minute, count := Busiest(test.bookings)
		if minute != test.minute || count != test.count {
			t.Errorf("%s: got %d, %d, expected %d, %d", test.description, minute, count, test.minute, test.count)
		}
	}
}
