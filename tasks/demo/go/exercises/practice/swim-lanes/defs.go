package swimlanes

import "errors"

// Booking says when a swimmer wants a lane. Times are in minutes after midnight.
type Booking struct {
	Swimmer string
	Start   int
	End     int
}

var (
	// ErrBadTime is for a booking whose end is not after its start.
	ErrBadTime = errors.New("booking must end after it starts")
	// ErrNoLane is for a booking which finds all lanes taken.
	ErrNoLane = errors.New("no lane is free")
)
