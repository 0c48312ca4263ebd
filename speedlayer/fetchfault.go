package speedlayer

import (
	"errors"

	"github.com/kappactl/kappactl/internal/archive"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafka"
)

// faultOf says what fault a fetch error is; an error that passes by itself has none.
func faultOf(err error, wanted int64) job.Fault {
	var gap *kafka.GapError
	var recreated *kafka.RecreatedError
	var missing *kafka.MissingTopicError
	var large *kafka.TooLargeError
	var damaged *archive.DamagedError
	f := job.Fault{Detail: err.Error(), From: wanted, To: wanted}
	switch {
	case errors.As(err, &gap):
		// Retention took [wanted, start); or the log was cut off and what it held in [end, wanted) will be written again.
		f.Kind, f.From, f.To = job.FaultGap, gap.Wanted, gap.Start
		if gap.Cut || gap.Wanted > gap.Start {
			f.From, f.To = gap.End, gap.Wanted
		}
	case errors.As(err, &recreated):
		f.Kind = job.FaultRecreated
	case errors.As(err, &missing):
		f.Kind = job.FaultMissing
	case errors.As(err, &large):
		f.Kind, f.From, f.To = job.FaultTooLarge, large.Offset, max(large.End, large.Offset+1)
	case errors.As(err, &damaged):
		f.Kind, f.From, f.To = job.FaultArchive, max(damaged.From, wanted), max(damaged.To, wanted+1)
	default:
		return job.Fault{}
	}
	return f
}

// passing reports whether a fault describes the brokers' present answer. It ends when that answer changes; every other
// fault ends when a person says so.
func passing(k job.FaultKind) bool { return k == job.FaultMissing || k == job.FaultRecreated }

// passingKinds are the kinds for which passing is true, as SQL.
const passingKinds = `('` + string(job.FaultMissing) + `', '` + string(job.FaultRecreated) + `')`
