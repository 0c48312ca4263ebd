package estimate

import (
	"fmt"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/render"
	"github.com/kappactl/kappactl/reprocess/plan"
)

// TooManyLetters warns of dead letters that end the replay or keep the version from being promoted.
func (r Replay) TooManyLetters(spec *job.Spec) []string {
	switch {
	case r.Records == nil || r.DeadLetters == nil || *r.DeadLetters == 0:
		return nil
	case spec.Source.OnError.Fail:
		return []string{
			fmt.Sprintf("about %s cannot be processed, and on_error: fail stops at the first: %s",
				render.Plural(*r.DeadLetters, "record"), r.DeadLetterFirst),
		}
	case float64(*r.DeadLetters) > spec.Source.OnError.Max*float64(*r.Records):
		return []string{fmt.Sprintf("about %s of %s cannot be processed, more than on_error allows (%.3g%%): %s; correct "+
			"the file, or raise source.on_error.dead_letter.max",
			render.Plural(*r.DeadLetters, "record"), render.Count(*r.Records), 100*spec.Source.OnError.Max, r.DeadLetterFirst)}
	}
	return nil
}

// Overtaken warns of topics whose retention may delete what the replay has not read by then.
func (r Replay) Overtaken(p plan.Deploy, now time.Time) []string {
	var out []string
	for _, t := range p.Topics {
		if r.ETASeconds == nil {
			continue
		}
		at := p.Overtaken(t.Name, *r.ETASeconds)
		if at == nil {
			continue
		}
		when := "deletes already"
		if left := at.Sub(now); left > 0 {
			when = "may begin to delete in " + render.Duration(left)
		}
		out = append(out, fmt.Sprintf("retention of topic %s %s what is replayed, and the replay takes about %s: raise %s, "+
			"replay.max_rate or the workers; a replay that is overtaken ends with exit code 7",
			t.Name, when, render.Seconds(r.ETASeconds), limits(t)))
	}
	return out
}

// limits are the settings of a topic that delete.
func limits(t job.TopicFacts) string {
	switch {
	case t.RetentionBytes < 0:
		return "retention.ms"
	case t.RetentionMS < 0:
		return "retention.bytes"
	}
	return "retention.ms and retention.bytes"
}

// Fits notes the free space of the folder where PostgreSQL keeps its data, and warns when the table, what the replay
// stages and its write-ahead log do not fit: at most all of them are there at once. More than four fifths of what is
// free is too close.
func (r *Replay) Fits(folder, why string, free func(folder string) (int64, error)) []string {
	if r.DiskBytes == nil || r.StagingBytes == nil || r.WALBytes == nil {
		return nil
	}
	if why == "" {
		n, err := free(folder)
		if err == nil {
			r.DiskFree = &n
		} else {
			why = fmt.Sprintf("%s cannot be looked at: %v", folder, err)
		}
	}
	if r.DiskFree == nil {
		r.DiskUnknown = why
		return nil
	}
	needs := *r.DiskBytes + *r.StagingBytes + *r.WALBytes
	switch n := *r.DiskFree; {
	case needs > n:
		return []string{
			fmt.Sprintf("PostgreSQL's disk (%s) has %s free and the replay needs up to %s: make room before deploy", folder,
				render.Bytes(n), render.Bytes(needs)),
		}
	case needs > n/5*4:
		return []string{
			fmt.Sprintf("PostgreSQL's disk (%s) has %s free and the replay needs up to %s", folder, render.Bytes(n),
				render.Bytes(needs)),
		}
	}
	return nil
}
