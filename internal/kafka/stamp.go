package kafka

import "time"

// stamped is the time that a record carries. The client counts nanoseconds in 64 bits, so that a number of milliseconds from
// the year 2262 on, such as microseconds taken for them, comes wrapped around as a moment that looks like any other.
// Multiplying by 1,000,000, which is 2^6 times an odd number, loses the topmost 6 bits only: the other 58 can be had back.
func stamped(at time.Time) time.Time {
	const (
		perMilli = 1_000_000
		twos     = 6
		inverse  = 0x790fb65668c26139 // of perMilli >> twos, modulo 2^64
	)
	nanos := at.UnixNano()
	if nanos%perMilli == 0 || nanos&(1<<twos-1) != 0 {
		return at // whole milliseconds, or finer ones, which no log has
	}
	low := uint64(nanos>>twos) * inverse            //nolint:gosec // the bits are meant
	return time.UnixMilli(int64(low<<twos) >> twos) //nolint:gosec // with the sign of the 58
}
