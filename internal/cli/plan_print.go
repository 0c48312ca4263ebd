package cli

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/kappactl/kappactl/internal/estimate"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/render"
)

// print writes one fact a line: name, then value. The diff follows the table, or is in it for programs.
func (r planResult) print(w io.Writer, style render.Style) error {
	t := render.NewTable("what", "value")
	add := func(name, format string, args ...any) {
		t.Add(render.Text(name), render.Text(fmt.Sprintf(format, args...)))
	}
	add("job", "%s", r.Job)
	add("action", "%s", r.words())
	add("live", "%s", known(r.Live))
	for _, c := range r.Changes {
		add("changes", "%s", changeText(c))
	}
	r.facts(add)
	for _, text := range r.Warnings {
		t.Add(render.Text("warning"), render.Toned(render.Warn, text))
	}
	for _, f := range r.Refusals {
		name := "refused"
		for line := range strings.SplitSeq(f.Cause, "\n") {
			t.Add(render.Text(name), render.Toned(render.Bad, line))
			name = ""
		}
		if f.Next != "" {
			add("next", "%s", f.Next)
		}
	}
	if !style.People {
		for line := range strings.Lines(r.Diff) {
			add("diff", "%s", strings.TrimSuffix(line, "\n"))
		}
		return t.Write(w, style)
	}
	if err := t.Write(w, style); err != nil || r.Diff == "" {
		return err
	}
	return r.printDiff(w, style)
}

// printDiff prints the diff of the job file below the table.
func (r planResult) printDiff(w io.Writer, style render.Style) error {
	var b strings.Builder
	b.WriteByte('\n')
	for line := range strings.Lines(shortened(r.Diff)) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "+"):
			line = style.Paint(render.Good, line)
		case strings.HasPrefix(line, "-"):
			line = style.Paint(render.Bad, line)
		}
		b.WriteString(line + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// facts are coverage, cost, columns and checks, each with its name.
func (r planResult) facts(add func(name, format string, args ...any)) {
	replayRows(r.Replay, add)
	add("view", "%s", r.View.Name)
	for _, c := range r.View.Added {
		add("new column", "%s %s", c.Name, c.Type)
	}
	for _, c := range r.View.Removed {
		add("lost column", "%s %s", c.Name, c.Type)
	}
	for _, name := range r.View.ReadBy {
		add("read by", "%s", name)
	}
	for _, a := range r.View.Additions {
		add("by hand", "%s %s: the new table will not have it", a.Kind, a.What)
	}
	for _, c := range r.Checks {
		add("check", "%s", c.words())
	}
}

func (r planResult) words() string {
	switch r.Action {
	case "nothing":
		return r.Version + " is live already: nothing to do"
	case "resume":
		return "go on with " + r.Version
	case "flip":
		return "flip the view to " + r.Version + ", which is standby: nothing is replayed"
	case "apply":
		return "apply the file to " + r.Version + ", which is live: nothing is replayed"
	case "refuse":
		return "deploy would refuse"
	}
	return "stage " + r.Version + " (" + r.Hash + ") and replay from " + r.Replay.Start
}

// freeText is the free space of PostgreSQL's disk.
func freeText(r estimate.Replay) string {
	if r.DiskFree == nil {
		return "unknown, " + r.DiskUnknown
	}
	return render.Bytes(*r.DiskFree)
}

func replayRows(r estimate.Replay, add func(name, format string, args ...any)) {
	for _, t := range r.Topics {
		add("retention", "%s: %s", t.Topic, retentionText(t))
	}
	replayRanges(r, add)
	if r.Archived > 0 {
		add("source", "%s offsets from the archive, %s from the log", render.Count(r.Archived),
			render.Count(r.Offsets-r.Archived))
	}
	if len(r.Partitions) == 0 {
		return
	}
	add("segments", "%d, %s", r.Segments, render.Plural(int64(r.Workers), "worker"))
	if r.Records == nil {
		return
	}
	add("records", "%s, %s (%s measured)", render.Count(*r.Records), render.Bytes(*r.Bytes), render.Count(r.Sampled))
	if *r.DeadLetters > 0 {
		n := render.Count(*r.DeadLetters)
		if r.Sampled < *r.Records {
			n = "about " + n
		}
		add("dead letters", "%s; the first: %s", n, r.DeadLetterFirst)
	}
	add("rows", "%s", render.CountOf(r.Rows))
	add("disk", "%s, and %s more during the replay; free: %s", render.Bytes(*r.DiskBytes), render.Bytes(*r.StagingBytes),
		freeText(r))
	add("WAL", "%s", render.Bytes(*r.WALBytes))
	if r.ETASeconds == nil {
		add("time", "unknown")
		return
	}
	then := ""
	if r.StableForSeconds > 0 {
		then = fmt.Sprintf(", then %s within the limits (ready.stable_for)", render.Seconds(&r.StableForSeconds))
	}
	add("time", "%s to replay and build at %s a worker (estimated from %s)%s", about(*r.ETASeconds),
		render.Rate(r.RecordsPerSecond), article(r.ETAFrom), then)
}

// planRanges is how many partitions are listed one by one.
const planRanges = 16

// replayRanges lists what is replayed, or sums it up by topic.
func replayRanges(r estimate.Replay, add func(name, format string, args ...any)) {
	if len(r.Partitions) <= planRanges {
		for _, p := range r.Partitions {
			add("replay", "%s/%d [%d,%d)", p.Topic, p.Partition, p.From, p.To)
		}
		return
	}
	for _, t := range r.Topics {
		var partitions, offsets int64
		for _, p := range r.Partitions {
			if p.Topic == t.Topic {
				partitions, offsets = partitions+1, offsets+p.To-p.From
			}
		}
		add("replay", "%s: %s, %s offsets (-o json has each)", t.Topic, render.Plural(partitions, "partition"),
			render.Count(offsets))
	}
}

// about is an estimated time: nothing is as quick as it may seem.
func about(seconds float64) string {
	if seconds < 1 {
		return "less than a second"
	}
	return "about " + render.Seconds(&seconds)
}

// article puts one before where an estimate is from.
func article(from string) string {
	if strings.HasPrefix(from, "e") {
		return "an " + from
	}
	return "a " + from
}

// msDuration is a time of Kafka's settings, which may be longer than durations are.
func msDuration(ms int64) time.Duration {
	return time.Duration(min(ms, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
}

func retentionText(t estimate.Topic) string {
	parts := []string{"kept without limit"}
	if t.RetentionMS >= 0 {
		parts[0] = fmt.Sprintf("kept for %s", job.FormatDuration(msDuration(t.RetentionMS)))
	}
	if t.RetentionBytes >= 0 {
		parts = append(parts, fmt.Sprintf("at most %s a partition", render.Bytes(t.RetentionBytes)))
	}
	if t.Compacted {
		parts = append(parts, "compacted")
	}
	text := strings.Join(parts, ", ")
	if t.DeletesFrom != nil {
		text += "; what is replayed may be deleted from " + render.Time(t.DeletesFrom) + " on"
	}
	return text
}

func changeText(c job.Change) string {
	if strings.Contains(c.From+c.To, "\n") || len(c.From)+len(c.To) > 100 {
		return c.Path
	}
	return fmt.Sprintf("%s: %s → %s", c.Path, cmp.Or(c.From, "nothing"), cmp.Or(c.To, "nothing"))
}

func known(s *string) string {
	if s == nil {
		return render.None
	}
	return *s
}
