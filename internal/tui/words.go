package tui

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/internal/render"
	"github.com/kappactl/kappactl/reprocess/status"
)

// phaseWords is a phase with its flags.
func phaseWords(v status.Version) string {
	text := strings.ReplaceAll(string(v.Phase), "_", " ")
	if v.Paused {
		text += ", paused"
	}
	if v.StaleSince != nil && v.Phase == job.Standby {
		text += ", stale"
	}
	return text
}

// verdictWords is a verdict as people say it.
func verdictWords(v job.Verdict) string { return strings.ReplaceAll(string(v), "_", " ") }

// seconds prints a time that may be unknown in whole seconds: parts of one only flicker.
func seconds(s *float64) string {
	if s == nil || math.IsNaN(*s) || *s > math.MaxInt64/float64(time.Second) {
		return render.None
	}
	switch {
	case *s <= 0:
		return "0s"
	case *s < 1:
		return "<1s"
	}
	return render.Duration(time.Duration(*s * float64(time.Second)).Round(time.Second))
}

// ago is how long something has been so. Clocks differ by a little: it is never negative.
func ago(now, since time.Time) string {
	if since.IsZero() {
		return render.None
	}
	return render.Duration(max(0, now.Sub(since)).Truncate(time.Second))
}

// short prints a count in at most six cells: 950, 12.3k, 3.1M.
func short(n *int64) string {
	if n == nil {
		return render.None
	}
	f := float64(*n)
	return strings.TrimSuffix(render.Rate(&f), "/s")
}

// brief prints a count in at most four cells: 950, 9.5k, 750k, 3.1M.
func brief(n int64) string {
	v, unit := float64(n), 0
	for v >= 999.5 && unit < len("kMGTPE") {
		v, unit = v/1000, unit+1
	}
	if unit == 0 {
		return strconv.FormatInt(n, 10)
	}
	digits := 0
	if v < 9.95 {
		digits = 1
	}
	return strconv.FormatFloat(v, 'f', digits, 64) + "kMGTPE"[unit-1:unit]
}

// behind is how far a version or a partition is from the end.
func behind(records *int64, behindFor *float64) string {
	switch {
	case records == nil:
		return "unknown"
	case *records == 0:
		return "nothing unread"
	case behindFor == nil || *behindFor <= 0:
		return render.Plural(*records, "record")
	}
	return render.Plural(*records, "record") + ", " + seconds(behindFor)
}

// progress is how much of what a version covers is in its table.
type progress struct {
	done, total int64
	known       bool
}

func (p progress) share() float64 {
	if !p.known || p.total <= 0 {
		if p.known {
			return 1
		}
		return 0
	}
	return float64(p.done) / float64(p.total)
}

// percent never says 100% before the end.
func (p progress) percent() string {
	if !p.known {
		return render.None
	}
	tenths := int64(1000)
	if p.total > 0 && p.done < p.total {
		tenths = min(999, int64(p.share()*1000))
	}
	return fmt.Sprintf("%d.%d%%", tenths/10, tenths%10)
}

// whole is the percentage without a fraction: 100% only at the end.
func (p progress) whole() string {
	if !p.known {
		return render.None
	}
	if p.total > 0 && p.done < p.total {
		return fmt.Sprintf("%d%%", min(99, int64(p.share()*100)))
	}
	return "100%"
}

// partitionProgress counts from the first offset that the version covers, else from the start of the log.
func partitionProgress(p status.Partition, f Facts) progress {
	start, ok := f.Starts[p.Topic+"/"+strconv.Itoa(int(p.Partition))]
	if !ok && p.Start != nil {
		start, ok = *p.Start, true
	}
	if !ok || p.LastStable == nil || p.LagRecords == nil {
		return progress{}
	}
	total := max(0, *p.LastStable-start)
	return progress{done: min(total, max(0, total-*p.LagRecords)), total: total, known: true}
}

func versionProgress(v status.Version, f Facts) progress {
	out := progress{known: len(v.Partitions) > 0}
	for _, p := range v.Partitions {
		one := partitionProgress(p, f)
		out.done, out.total, out.known = out.done+one.done, out.total+one.total, out.known && one.known
	}
	return out
}

// outlook says whether a version has read everything, and if not when it will have, if ever.
func outlook(now time.Time, v status.Version, made *float64) (string, tone) {
	rates := ""
	if v.RecordsPerSecond != nil && made != nil {
		rates = fmt.Sprintf(": %s read, %s arrive", render.Rate(v.RecordsPerSecond), render.Rate(made))
	}
	switch {
	case v.Phase.Ended():
		return "", dim
	case v.Paused:
		return "paused", warn
	case v.Verdict == job.Unhealthy:
		return "unhealthy", bad
	case v.Verdict == job.Holding:
		return v.Reason, live
	case v.Verdict == job.BlockedByTxn || v.ReasonCode == reason.CodeOpenTransaction:
		return "held back by an open transaction", warn
	case v.LagRecords != nil && *v.LagRecords == 0 && v.Phase.Consumes():
		return "caught up: everything is read", live
	case v.LagRecords != nil && *v.LagRecords == 0:
		return "everything is read", live
	case v.Verdict == job.Stalled:
		return "stalled: nothing is read", bad
	case v.Verdict == job.Unknown:
		return "nothing fresh is known", warn
	case v.Verdict == job.Ready:
		return "caught up: within its limits", live
	case v.Verdict == job.NotConverging:
		return "does not converge" + rates, bad
	case v.ETASeconds != nil:
		return "ETA " + seconds(v.ETASeconds) + clockOf(now, *v.ETASeconds) + ", converges" + rates, plain
	case v.Phase.Consumes() && rates != "" && *v.RecordsPerSecond <= *made && v.Verdict == job.Lagging:
		return "does not converge" + rates, warn
	}
	return "no estimate yet", dim
}

// clockOf is the time of day of an estimate that is far enough away to do something else before.
func clockOf(now time.Time, in float64) string {
	if in < 120 || in > 86400 {
		return ""
	}
	return " (" + now.Add(time.Duration(in*float64(time.Second))).UTC().Format("15:04") + " UTC)"
}

// waitsFor says in words what a version waits for before readers can see it, or what it does for them.
func waitsFor(v status.Version, d *status.Deployment, f Facts, readOnly bool) string {
	switch {
	case v.Phase.Ended():
		if v.Error != "" {
			return "nothing: it " + string(v.Phase) + ". " + v.Error
		}
		return "nothing: it is " + string(v.Phase)
	case v.Paused:
		return "somebody to resume it" + keyOf(readOnly, "space")
	case d != nil && d.ExitCode != nil && d.Message != "":
		return withNext(withoutExamples(d.Message), d.Next)
	case v.Verdict == job.Unhealthy || v.Verdict == job.Stalled || v.Verdict == job.BlockedByTxn:
		return verdictWords(v.Verdict) + ": " + v.Reason
	}
	return waitsInPhase(v, d, f, readOnly)
}

func waitsInPhase(v status.Version, d *status.Deployment, f Facts, readOnly bool) string {
	switch v.Phase {
	case job.Staged:
		return "an agent to write down the ranges to replay"
	case job.Replaying:
		if v.ReasonCode == reason.CodeQueued {
			return "its turn: " + v.Reason
		}
		if v.Verdict == job.Starting {
			return v.Reason
		}
		text := "history to be read: " + behind(v.LagRecords, nil) + " to go"
		if f.Segments > 0 {
			text += fmt.Sprintf("; %d of %d segments done", f.Done, f.Segments)
		}
		return text
	case job.Building:
		return "its table: filled, indexed and analyzed from what was read"
	case job.CatchingUp:
		return catchingUp(v, f)
	case job.CaughtUp:
		return "its checks, at the same offsets as live"
	case job.Verified:
		if d != nil && d.State == job.RollingOut {
			return "the flip"
		}
		return "somebody to promote it" + keyOf(readOnly, "p")
	case job.Live:
		return "nothing: readers see it"
	case job.Standby:
		return "the end of its rollback window; it follows its topics until then"
	case job.Retiring:
		return "its work to stop, then its table goes"
	case job.Retired, job.Aborted, job.Failed:
	}
	return v.Reason
}

func catchingUp(v status.Version, f Facts) string {
	if v.Verdict == job.Holding || v.Verdict == job.Ready || v.Verdict == job.Unknown || v.Verdict == job.Starting ||
		len(v.Partitions) == 0 {
		return verdictWords(v.Verdict) + ": " + v.Reason
	}
	worst := worstFirst(v.Partitions)[0]
	text := fmt.Sprintf("%s/%d: %s", worst.Topic, worst.Partition, worst.Reason)
	if f.Ready.MaxLagTime > 0 {
		text += fmt.Sprintf("; ready once every partition is at most %s behind for %s", render.Duration(f.Ready.MaxLagTime),
			render.Duration(f.Ready.StableFor))
	}
	return text
}

func keyOf(readOnly bool, name string) string {
	if readOnly {
		return ""
	}
	return ": press " + name
}

// withoutExamples leaves out the lines of a message that are indented: examples of what differs.
func withoutExamples(text string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(text, "\n"),
		func(line string) bool { return strings.HasPrefix(line, " ") }), " ")
}

func withNext(text, next string) string {
	if next == "" {
		return text
	}
	return text + " Next: " + next
}
