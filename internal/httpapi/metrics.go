package httpapi

import (
	"context"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kappactl/kappactl/internal/job"
)

// Version is what is known of one version of a job; nil is unknown and is left out.
type Version struct {
	Ref              job.Ref
	Phase            job.Phase
	Verdict          job.Verdict
	LagRecords       *int64
	LagSeconds       *float64
	RecordsPerSecond *float64
	Records          int64
	DeadLetters      int64
	Warnings         int
	Partitions       []Partition
	Checks           []Check
}

// Check is what a check of a version said last.
type Check struct {
	Name    string
	Stage   string // before, after
	Outcome string // pass, fail, no answer
	Seconds float64
	// Failures are in a row.
	Failures int
}

// Partition is what is known of one partition of a version; nil is unknown and is left out.
type Partition struct {
	Topic            string
	ID               int32
	LagRecords       *int64
	LagSeconds       *float64
	RecordsPerSecond *float64
	RetentionSeconds *float64 // until retention may delete what is unread
}

// Work is what this process has done since it started.
type Work struct {
	Records, Bytes, DeadLetters, Segments, Commits, CommitRetries, LeaseLosses, Faults int64
	ThrottledSeconds                                                                   float64
}

// collector reads its values at each scrape.
type collector struct{ s *Server }

func perVersion(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("kappactl_"+name, help, append([]string{"job", "version"}, labels...), nil)
}

func ofProcess(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("kappactl_agent_"+name, help, nil, nil)
}

// Describe sends nothing: which versions there are is known at the scrape only.
func (collector) Describe(chan<- *prometheus.Desc) {}

// Collect sends what is known now.
func (c collector) Collect(out chan<- prometheus.Metric) {
	c.work(out)
	ctx, cancel := context.WithTimeout(context.Background(), answerIn)
	defer cancel()
	versions, err := c.s.deps.Versions(ctx)
	up := 1.0
	if err != nil {
		up = 0
	}
	out <- prometheus.MustNewConstMetric(ofProcess("database_up", "1 when the control schema could be read."), prometheus.GaugeValue, up)
	for _, v := range versions {
		c.version(out, v)
	}
}

func (c collector) version(out chan<- prometheus.Metric, v Version) {
	name, number := string(v.Ref.Job), v.Ref.Number.String()
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, append([]string{name, number}, labels...)...)
	}
	gauge(perVersion("phase", "1 for the phase that a version is in.", "phase"), 1, string(v.Phase))
	gauge(perVersion("verdict", "1 for the verdict on a version's readiness.", "verdict"), 1, string(v.Verdict))
	if v.LagRecords != nil {
		gauge(perVersion("lag_records", "Offsets that are not processed yet."), float64(*v.LagRecords))
	}
	if v.LagSeconds != nil {
		gauge(perVersion("lag_seconds", "Age of the oldest end offset that is not reached, of the partition furthest behind."), *v.LagSeconds)
	}
	if v.RecordsPerSecond != nil {
		gauge(perVersion("records_per_second", "Records processed a second."), *v.RecordsPerSecond)
	}
	gauge(perVersion("records", "Records processed by the version."), float64(v.Records))
	gauge(perVersion("dead_letters", "Records that the version could not process."), float64(v.DeadLetters))
	for _, k := range v.Checks {
		gauge(perVersion("check_outcome", "1 for what a check said last: pass, fail, no answer.", "check", "stage", "outcome"), 1, k.Name, k.Stage, k.Outcome)
		gauge(perVersion("check_failures", "How often in a row a check failed; two after the flip roll back.", "check", "stage"), float64(k.Failures), k.Name, k.Stage)
		gauge(perVersion("check_seconds", "How long the last run of a check took.", "check", "stage"), k.Seconds, k.Name, k.Stage)
	}
	gauge(perVersion("warnings", "What a person should know of a version beside its verdict, such as retention that comes before the end of a replay."), float64(v.Warnings))
	for _, p := range v.Partitions {
		partition := func(name, help string, value float64) {
			gauge(perVersion("partition_"+name, help, "topic", "partition"), value, p.Topic, strconv.Itoa(int(p.ID)))
		}
		if p.LagRecords != nil {
			partition("lag_records", "Offsets of a partition that are not processed yet.", float64(*p.LagRecords))
		}
		if p.LagSeconds != nil {
			partition("lag_seconds", "Age of the oldest end offset of a partition that is not reached.", *p.LagSeconds)
		}
		if p.RecordsPerSecond != nil {
			partition("records_per_second", "Records of a partition processed a second.", *p.RecordsPerSecond)
		}
		if p.RetentionSeconds != nil {
			partition("retention_seconds", "Time until retention may delete what is unread of a partition that is behind.", *p.RetentionSeconds)
		}
	}
}

func (c collector) work(out chan<- prometheus.Metric) {
	w := c.s.deps.Work()
	for _, m := range []struct {
		name, help string
		value      float64
	}{
		{"records_total", "Records in committed segments and live batches.", float64(w.Records)},
		{"bytes_total", "Bytes of their keys and values.", float64(w.Bytes)},
		{"dead_letters_total", "Records that could not be processed.", float64(w.DeadLetters)},
		{"segments_total", "Segments replayed.", float64(w.Segments)},
		{"commits_total", "Live commits.", float64(w.Commits)},
		{"commit_retries_total", "Live transactions that were rolled back and run again.", float64(w.CommitRetries)},
		{"lease_losses_total", "Segments and partitions that another agent took.", float64(w.LeaseLosses)},
		{"faults_total", "Faults written.", float64(w.Faults)},
		{"throttled_seconds_total", "Time that the brokers told this agent to wait.", w.ThrottledSeconds},
	} {
		out <- prometheus.MustNewConstMetric(ofProcess(m.name, m.help), prometheus.CounterValue, m.value)
	}
}
