package kafka

import "time"

// stamped returns the time of a record. The client counts nanoseconds in 64 bits, so that a number of milliseconds
// beyond the year 2262, such as microseconds mistaken for milliseconds, overflows to an arbitrary time. Multiplication
// by 1,000,000, which is 2^6 times an odd number, loses only the top 6 bits; the other 58 can be recovered.
func stamped(at time.Time) time.Time {
	const (
		perMilli = 1_000_000
		twos     = 6
		inverse  = 0x790fb65668c26139 // of perMilli >> twos, modulo 2^64
	)
	nanos := at.UnixNano()
	if nanos%perMilli == 0 || nanos&(1<<twos-1) != 0 {
		return at // whole milliseconds, or a finer time, which no log has
	}
	low := uint64(nanos>>twos) * inverse            //nolint:gosec // the bits are meant
	return time.UnixMilli(int64(low<<twos) >> twos) //nolint:gosec // with the sign of the 58
}
