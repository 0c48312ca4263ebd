package main

import (
	"fmt"
	"io"
	"strings"
)

// section is one part of a document: the text between its markers.
type section struct {
	name string
	text string
	plot string // an SVG, or empty
}

// sections are those that were measured.
func (r *result) sections() []section {
	var out []section
	add := func(name, text, plot string) {
		out = append(out, section{name, text + "\n" + r.footnote() + "\n", plot})
	}
	if len(r.Rounds) > 0 {
		add("replay", r.replayTable(), r.replayPlot())
		add("short", r.shortTable(), "")
	}
	if r.Archived != nil {
		add("archive", r.archiveTable(), "")
	}
	if len(r.Keys) > 0 {
		add("keys", scaleTable(r.Keys, "distinct keys", func(s scale) int64 { return s.Keys }),
			scalePlot("Distinct keys", r.Keys, func(s scale) float64 { return float64(s.Keys) }))
	}
	if len(r.Growth) > 0 {
		add("growth", scaleTable(r.Growth, "records", func(s scale) int64 { return s.Records }),
			scalePlot("Records", r.Growth, func(s scale) float64 { return float64(s.Records) }))
	}
	if len(r.Live) > 0 {
		add("live", r.liveTable(), r.livePlot())
	}
	if f := r.Flip; f != nil {
		add("flip", fmt.Sprintf("%d flips under %d readers: %s reads, %d errors; a read took %.1f ms in the median, %.1f "+
			"ms at the 99th percentile and %.0f ms at worst.\n",
			f.Flips, flipReaders, thousands(int64(f.Reads)), f.Errors, f.Median*1000, f.P99*1000, f.Longest*1000), "")
	}
	if s := r.Split; s != nil {
		add("split", fmt.Sprintf("A point read of a view over %s rows took %.3f ms plain and %.3f ms split, prepared; %.3f ms and %.3f ms unprepared "+
			"(medians, in turns on one connection). %s OFREP evaluations at %d a second: %d failed, %.1f ms in the median, %.1f ms at the 99th "+
			"percentile and %.0f ms at worst.\n", thousands(s.Rows), s.Prepared.Plain*1000, s.Prepared.Split*1000,
			s.Simple.Plain*1000,
			s.Simple.Split*1000, thousands(int64(s.Routes.Requests)), routeRate, s.Routes.Failed, s.Routes.Median*1000,
			s.Routes.P99*1000,
			s.Routes.Longest*1000), "")
	}
	if len(r.Jobs) > 0 {
		add("jobs", r.jobsTable(), r.jobsPlot())
	}
	if len(r.Matrix) > 0 {
		add("matrix", r.matrixTable(), "")
	}
	return out
}

// footnote says where and when the section was measured.
func (r *result) footnote() string {
	at := ""
	if r.Commit != "" {
		at = " at " + r.Commit
	}
	return fmt.Sprintf("Measured on %s%s, on %d cores shared with the broker and PostgreSQL.",
		r.Began.Format("2006-01-02"), at, r.CPUs)
}

func (r *result) replayTable() string {
	t := table{
		{
			"", "rounds", "built", "served", "records/s", "MB/s", "of the limit", "records/core-s", "peak memory",
			"end of replay to served",
		},
	}
	for _, name := range r.Order {
		all := r.Rounds[name]
		built, tail, ratio := "", "", ""
		if all[0].Built > 0 {
			built = seconds(of(all, func(m measure) float64 { return m.Built }))
			tail = seconds(of(all, func(m measure) float64 { return m.Tail }))
		}
		if share := r.ofLimit(name); share > 0 {
			ratio = fmt.Sprintf("%.2f", share)
		}
		t = append(t, []string{
			name, fmt.Sprint(len(all)), built, seconds(of(all, func(m measure) float64 { return m.Served })),
			million(of(all, measure.rate)),
			fmt.Sprintf("%.0f", of(all, func(m measure) float64 { return float64(m.Bytes) / m.Served / 1e6 })), ratio,
			million(of(all, func(m measure) float64 { return float64(m.Records) / m.CPU })),
			megabytes(of(all, func(m measure) float64 { return float64(m.Peak) })), tail,
		})
	}
	first := r.Rounds[r.Order[0]]
	return fmt.Sprintf("%s records of %d bytes on %d partitions, compression %s; medians of the rounds.\n\n",
		thousands(first[0].Records),
		first[0].Bytes/first[0].Records, r.Partitions, r.Codec) + t.String() + r.plannedLine()
}

// plannedLine compares the time that plan predicted before each deploy with the time that it took; empty when plan did
// not run.
func (r *result) plannedLine() string {
	var parts []string
	for _, name := range r.Order {
		all := r.Rounds[name]
		if all[0].Planned > 0 {
			parts = append(parts, fmt.Sprintf("%s %.1f s where it took %.1f s", name,
				of(all, func(m measure) float64 { return m.Planned }), of(all, measure.worked)))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "\n`kappactl plan`, asked before each deploy on a database without earlier replays, said of replaying and " +
		"building: " + strings.Join(parts, "; ") + ".\n"
}

// shortTable is the replay table for the README: the whole topic with all workers, beside the limit and the peers.
func (r *result) shortTable() string {
	t := table{{"", "seconds", "records/s", "of the limit", "peak memory"}}
	for _, name := range r.Order {
		all := r.Rounds[name]
		if strings.Contains(name, "the same,") || strings.Contains(name, "1 worker") || strings.Contains(name, "flights") {
			continue
		}
		ratio := ""
		if share := r.ofLimit(name); share > 0 {
			ratio = fmt.Sprintf("%.2f", share)
		}
		row := []string{
			name, fmt.Sprintf("%.1f", of(all, func(m measure) float64 { return m.Served })), million(of(all, measure.rate)),
			ratio,
			megabytes(of(all, func(m measure) float64 { return float64(m.Peak) })),
		}
		if strings.HasPrefix(name, "kappactl") {
			for i := range row {
				row[i] = "**" + row[i] + "**"
			}
		}
		t = append(t, row)
	}
	first := r.Rounds[r.Order[0]]
	return fmt.Sprintf("A replay of %s JSON records of %d bytes (%d partitions, compression %s) into an hourly rollup "+
		"(%s rows at most), from the start of\n"+
		"the command to the served, indexed, analysed table; medians of %d rounds of one run of `make bench`:\n\n",
		thousands(first[0].Records), first[0].Bytes/first[0].Records,
		r.Partitions, r.Codec, thousands(pages*hours), len(first)) + t.String()
}

func scaleTable(all []scale, of string, n func(scale) int64) string {
	t := table{
		{of, "served", "records/s", "µs a record", "peak memory", "replay", "merge", "index", "end of replay to served"},
	}
	for _, s := range all {
		t = append(t, []string{
			thousands(n(s)), seconds(s.Served), million(s.rate()), fmt.Sprintf("%.2f", s.Served/float64(s.Records)*1e6),
			megabytes(float64(s.Peak)),
			seconds(s.Replay), seconds(s.Steps["build fill"]), seconds(s.Steps["build index"]), seconds(s.Tail),
		})
	}
	return t.String()
}

func (r *result) liveTable() string {
	t := table{
		{
			"agents", "partitions", "records/s", "visible after: p50", "p95", "p99", "longest", "commits/s", "a commit",
			"agents' CPU", "peak memory",
		},
	}
	ms := func(s float64) string { return fmt.Sprintf("%.0f ms", s*1000) }
	for _, f := range r.Live {
		t = append(t, []string{
			fmt.Sprint(f.Agents), fmt.Sprint(f.Partitions), thousands(int64(f.Rate)), ms(f.P50), ms(f.P95), ms(f.P99),
			ms(f.Longest),
			fmt.Sprintf("%.1f", f.Commits), ms(f.Commit), fmt.Sprintf("%.2f cores", f.CPU), megabytes(float64(f.Peak)),
		})
	}
	return fmt.Sprintf("%.0f seconds each.\n\n", r.Live[0].Seconds) + t.String()
}

func (r *result) matrixTable() string {
	t := table{
		{"bytes a record", "compression", "partitions", "records", "records/s read", "MB/s read", "served", "peak memory"},
	}
	for _, c := range r.Matrix {
		t = append(t, []string{
			c.kind(), c.Codec, fmt.Sprint(c.Partitions), thousands(c.Records),
			thousands(int64(float64(c.Records) / max(c.Replay, 1e-3))),
			fmt.Sprintf("%.0f", c.throughput()/1e6), seconds(c.Served), megabytes(float64(c.Peak)),
		})
	}
	return t.String()
}

// table is rows of cells, the head first.
type table [][]string

func (t table) String() string {
	var b strings.Builder
	for i, row := range t {
		b.WriteString("| " + strings.Join(row, " | ") + " |\n")
		if i == 0 {
			b.WriteString("|" + strings.Repeat(" --- |", len(row)) + "\n")
		}
	}
	return b.String()
}

// print writes all that was measured, and what failed.
func (r *result) print(out io.Writer) error {
	var b strings.Builder
	for _, s := range r.sections() {
		if s.name != "short" {
			b.WriteString("\n" + s.text)
		}
	}
	for _, f := range r.Failed {
		fmt.Fprintf(&b, "\nfailed: %s: %s\n", f.Part, f.Error)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func million(n float64) string { return fmt.Sprintf("%.2f M", n/1e6) }

func seconds(s float64) string { return fmt.Sprintf("%.2f s", s) }

func megabytes(n float64) string { return fmt.Sprintf("%.0f MB", n/1e6) }

// thousands writes 1234567 as 1,234,567.
func thousands(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func (r *result) jobsTable() string {
	t := table{{
		"live versions", "topics", "transactions/s", "cores", "memory", "connections to brokers", "to PostgreSQL",
		"p99 with records", "status", "one more deploy", "second agent", "takeover",
	}}
	for _, c := range r.Jobs {
		p99 := ""
		if c.P99 > 0 {
			p99 = fmt.Sprintf("%.0f ms", c.P99*1000)
		}
		t = append(t, []string{
			thousands(int64(c.Jobs)), fmt.Sprint(c.Topics), fmt.Sprintf("%.1f", c.Transactions), fmt.Sprintf("%.3f", c.CPU),
			megabytes(float64(c.Memory)),
			fmt.Sprint(c.Brokers), fmt.Sprint(c.Database), p99, seconds(c.Status), seconds(c.Deploy),
			seconds(c.Join), seconds(c.Takeover),
		})
	}
	return t.String()
}
