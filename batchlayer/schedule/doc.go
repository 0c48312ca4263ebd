// Package schedule decides when batch runs of a Lambda job begin, and begins them.
//
//	parse.go     an expression (cron, @daily, @every) as fields; github.com/robfig/cron only reads the fields
//	next.go      the moments of an expression in a time zone
//	schedule.go  which of them are due, were missed, or wait for a run under way
//
// A moment at which a run is due is a tick. Ticks are rows with the key (job, scheduled_for): no clock that steps back,
// no second agent and no restart repeats one. Any agent polls once a second, in one transaction; there is no leader. A
// tick means "cut here, then compute the generation up to the cut", so a run that replaces several ticks loses
// nothing.
package schedule
