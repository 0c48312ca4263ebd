package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/render"
	"github.com/kappactl/kappactl/reprocess/status"
)

// statusRow is a version as a row of csv.
type statusRow struct {
	Job              job.Name    `json:"job"`
	View             string      `json:"view"`
	Version          string      `json:"version"`
	Live             bool        `json:"live"`
	Phase            job.Phase   `json:"phase"`
	Verdict          job.Verdict `json:"verdict"`
	Reason           string      `json:"reason"`
	LagRecords       *int64      `json:"lag_records"`
	LagSeconds       *float64    `json:"lag_seconds"`
	RecordsPerSecond *float64    `json:"records_per_second"`
	ETASeconds       *float64    `json:"eta_seconds"`
	Records          int64       `json:"records"`
	DeadLetters      int64       `json:"dead_letters"`
	Hash             string      `json:"hash"`
}

func statusRows(jobs []status.Job) []statusRow {
	out := []statusRow{}
	for _, j := range jobs {
		for _, v := range j.Versions {
			out = append(out, statusRow{
				Job: j.Job, View: j.View, Version: v.Version, Live: j.Live != nil && *j.Live == v.Version, Phase: v.Phase,
				Verdict: v.Verdict, Reason: v.Reason, LagRecords: v.LagRecords, LagSeconds: v.LagSeconds,
				RecordsPerSecond: v.RecordsPerSecond, ETASeconds: v.ETASeconds, Records: v.Records,
				DeadLetters: v.DeadLetters, Hash: v.Hash,
			})
		}
	}
	return out
}

// printStatuses prints one line a version; partitions adds one line a partition. Without wide, columns are left out
// that a terminal of 80 characters has no room for.
func printStatuses(w io.Writer, s render.Style, jobs []status.Job, partitions, wide bool) error {
	titles := []string{
		"job", "version", "phase", ">lag records", ">lag time", ">rate", ">eta", ">dead letters",
		"verdict", "reason",
	}
	narrow := []int{0, 1, 2, 4, 8, 9}
	t := render.NewTable(chosen(titles, narrow, wide)...)
	for _, j := range jobs {
		for _, v := range j.Versions {
			t.Add(chosen([]render.Cell{
				render.Toned(render.Strong, string(j.Job)), render.Text(v.Version), phaseCell(v),
				number(s, v.LagRecords), render.Text(render.Seconds(v.LagSeconds)), render.Text(render.Rate(v.RecordsPerSecond)),
				render.Text(render.Seconds(v.ETASeconds)), number(s, &v.DeadLetters), verdictCell(v),
				render.Text(render.Or(reasonOf(v))),
			}, narrow, wide)...)
		}
	}
	if err := t.Write(w, s); err != nil {
		return err
	}
	if !partitions {
		return nil
	}
	if err := printPartitions(w, s, jobs, wide); err != nil {
		return err
	}
	if err := printGaps(w, jobs); err != nil {
		return err
	}
	return printWarnings(w, s, jobs)
}

// gapLines is how many accepted gaps of a version are listed one by one.
const gapLines = 10

// printGaps says which offsets the results of versions lack because a person accepted that, or hold although the log
// lost them.
func printGaps(w io.Writer, jobs []status.Job) error {
	var b strings.Builder
	for _, j := range jobs {
		for _, v := range j.Versions {
			for i, g := range v.Gaps {
				if i == gapLines {
					fmt.Fprintf(&b, "\n%s: %s more (kappactl status %s -o json has each)\n", v.Version,
						render.Plural(int64(len(v.Gaps)-i), "accepted gap"), j.Job)
					break
				}
				fmt.Fprintf(&b, "\n%s: accepted gap %s/%d [%d,%d): %s\n", v.Version, g.Topic, g.Partition, g.From, g.To, gapText(g))
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func gapText(g status.Gap) string {
	text := "the results lack " + render.Plural(g.To-g.From, "offset")
	if g.Counted {
		text = "the results hold " + render.Plural(g.To-g.From, "offset") + " that the log has lost"
	}
	text += "; accepted " + render.Time(&g.At)
	if g.By != "" {
		text += " by " + g.By
	}
	return text
}

// printWarnings says for people what they should know beside the verdicts, and by when what is unread is deleted.
func printWarnings(w io.Writer, s render.Style, jobs []status.Job) error {
	for _, j := range jobs {
		for _, v := range j.Versions {
			for _, text := range v.Warnings {
				if _, err := fmt.Fprintf(w, "\n%s %s: %s\n", s.Paint(render.Warn, "warning"), v.Version, text); err != nil {
					return err
				}
			}
			if v.RetentionDeadline == nil {
				continue
			}
			if _, err := fmt.Fprintf(w, "\n%s: retention may delete what is unread from %s on\n", v.Version,
				render.Time(v.RetentionDeadline)); err != nil {
				return err
			}
		}
	}
	return nil
}

// chosen are all items, or those at the places alone.
func chosen[T any](items []T, places []int, all bool) []T {
	if all {
		return items
	}
	out := make([]T, len(places))
	for i, at := range places {
		out[i] = items[at]
	}
	return out
}

// printPartitions is a second table, set off by an empty line.
func printPartitions(w io.Writer, s render.Style, jobs []status.Job, wide bool) error {
	titles := []string{
		"version", "partition", ">position", ">end", ">lag records", ">lag time", ">rate", "verdict",
		"reason",
	}
	narrow := []int{0, 1, 4, 5, 7, 8}
	t := render.NewTable(chosen(titles, narrow, wide)...)
	for _, j := range jobs {
		for _, v := range j.Versions {
			if v.Phase.Ended() {
				continue
			}
			for _, p := range v.Partitions {
				t.Add(chosen([]render.Cell{
					render.Text(v.Version), render.Text(fmt.Sprintf("%s/%d", p.Topic, p.Partition)), number(s, p.Position),
					number(s, p.End),
					number(s, p.LagRecords), render.Text(render.Seconds(p.LagSeconds)), render.Text(render.Rate(p.RecordsPerSecond)),
					render.Toned(verdictTone(p.Verdict), string(p.Verdict)), render.Text(render.Or(p.Reason)),
				}, narrow, wide)...)
			}
		}
	}
	if t.Len() == 0 {
		return nil
	}
	if _, err := io.WriteString(w, "\n"); err != nil {
		return err
	}
	return t.Write(w, s)
}

// number has separators for people only: scripts want to add it up.
func number(s render.Style, n *int64) render.Cell {
	if n == nil || s.People {
		return render.Text(render.CountOf(n))
	}
	return render.Text(fmt.Sprint(*n))
}

func phaseCell(v status.Version) render.Cell {
	text, tone := string(v.Phase), render.Plain
	switch {
	case v.Paused:
		text, tone = text+" (paused)", render.Warn
	case v.Phase == job.Live:
		tone = render.Good
	case v.Phase == job.Failed:
		tone = render.Bad
	case v.Phase.Ended():
		tone = render.Dim
	}
	return render.Toned(tone, text)
}

func verdictCell(v status.Version) render.Cell {
	if v.Phase.Ended() {
		return render.Text(render.None)
	}
	return render.Toned(verdictTone(v.Verdict), string(v.Verdict))
}

func verdictTone(v job.Verdict) render.Tone {
	switch v {
	case job.Ready:
		return render.Good
	case job.Unhealthy, job.Stalled:
		return render.Bad
	case job.Unknown, job.BlockedByTxn, job.NotConverging:
		return render.Warn
	case job.Starting, job.ReplayingRanges, job.Lagging, job.Holding:
	}
	return render.Plain
}

// reasonOf is why a version ended, else why it has its verdict.
func reasonOf(v status.Version) string {
	if v.Phase.Ended() {
		return v.Error
	}
	text := v.Reason
	if v.StaleSince != nil {
		text = "stale since " + render.Time(v.StaleSince) + "; " + text
	}
	switch {
	case v.Phase != job.Standby:
	case v.Pinned:
		text = "pinned; " + text
	case v.StandbyUntil != nil:
		text = "kept until " + render.Time(v.StandbyUntil) + "; " + text
	}
	return text
}
