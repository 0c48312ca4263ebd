package httpapi

import (
	"context"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kappactl/kappactl/internal/job"
)

// Version is the state of one version of a job. nil values are unknown and not exported.
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

// Check is the last result of a check of a version.
type Check struct {
	Name    string
	Stage   string // "before" or "after"
	Outcome string // "pass", "fail" or "no answer"
	Seconds float64
	// Failures is the number of consecutive failures.
	Failures int
}

// Partition is the state of one partition of a version. nil values are unknown and not exported.
type Partition struct {
	Topic            string
	ID               int32
	LagRecords       *int64
	LagSeconds       *float64
	RecordsPerSecond *float64
	RetentionSeconds *float64 // seconds until retention may delete unread offsets
	Verdict          job.Verdict
	Reason           string // code of the verdict's reason
}

// Work counts what this process has done since it started.
type Work struct {
	Records, Bytes, DeadLetters, Segments, Commits, CommitRetries, LeaseLosses, Faults int64
	FetchedBytes                                                                       int64
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

// Describe sends nothing: the set of versions is only known at a scrape.
func (collector) Describe(chan<- *prometheus.Desc) {}

// Collect exports the current values.
func (c collector) Collect(out chan<- prometheus.Metric) {
	c.work(out)
	ctx, cancel := context.WithTimeout(context.Background(), answerIn)
	defer cancel()
	versions, err := c.s.deps.Versions(ctx)
	up := 1.0
	if err != nil {
		up = 0
	}
	out <- prometheus.MustNewConstMetric(ofProcess("database_up", "1 if the control schema can be read."),
		prometheus.GaugeValue, up)
	for _, v := range versions {
		c.version(out, v)
	}
	c.archives(ctx, out)
	c.schedules(ctx, out)
	c.layers(ctx, out)
}

func (c collector) version(out chan<- prometheus.Metric, v Version) {
	name, number := string(v.Ref.Job), v.Ref.Number.String()
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, append([]string{name, number}, labels...)...)
	}
	gauge(perVersion("phase", "1 for the version's current phase.", "phase"), 1, string(v.Phase))
	gauge(perVersion("verdict", "1 for the current verdict on the version's readiness.", "verdict"), 1, string(v.Verdict))
	if v.LagRecords != nil {
		gauge(perVersion("lag_records", "Readable offsets that are not processed yet."), float64(*v.LagRecords))
	}
	if v.LagSeconds != nil {
		gauge(perVersion("lag_seconds", "Age of the oldest end offset not yet reached, of the partition furthest behind."),
			*v.LagSeconds)
	}
	if v.RecordsPerSecond != nil {
		gauge(perVersion("records_per_second", "Records processed per second."), *v.RecordsPerSecond)
	}
	gauge(perVersion("records", "Records processed by the version."), float64(v.Records))
	gauge(perVersion("dead_letters", "Records that the version could not process."), float64(v.DeadLetters))
	for _, k := range v.Checks {
		gauge(perVersion("check_outcome", "1 for the last result of a check: pass, fail or no answer.", "check", "stage",
			"outcome"), 1, k.Name, k.Stage, k.Outcome)
		gauge(perVersion("check_failures", "Consecutive failures of a check; two after the flip trigger a rollback.", "check",
			"stage"), float64(k.Failures), k.Name, k.Stage)
		gauge(perVersion("check_seconds", "Duration of a check's last run.", "check", "stage"), k.Seconds, k.Name, k.Stage)
	}
	gauge(perVersion("warnings",
		"Current warnings about a version, such as records that expire before the replay reads them."), float64(v.Warnings))
	for _, p := range v.Partitions {
		partition := func(name, help string, value float64) {
			gauge(perVersion("partition_"+name, help, "topic", "partition"), value, p.Topic, strconv.Itoa(int(p.ID)))
		}
		if p.Verdict != "" {
			gauge(perVersion("partition_verdict", "1 for the verdict on a partition, with the code of its reason.",
				"topic", "partition", "verdict", "reason"), 1, p.Topic, strconv.Itoa(int(p.ID)), string(p.Verdict), p.Reason)
		}
		if p.LagRecords != nil {
			partition("lag_records", "Readable offsets of a partition that are not processed yet.", float64(*p.LagRecords))
		}
		if p.LagSeconds != nil {
			partition("lag_seconds", "Age of a partition's oldest end offset not yet reached.", *p.LagSeconds)
		}
		if p.RecordsPerSecond != nil {
			partition("records_per_second", "Records of a partition processed per second.", *p.RecordsPerSecond)
		}
		if p.RetentionSeconds != nil {
			partition("retention_seconds", "Time until retention may delete unread records of a partition that is behind.",
				*p.RetentionSeconds)
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
		{"bytes_total", "Bytes of the keys and values of these records.", float64(w.Bytes)},
		{
			"fetched_bytes_total", "Bytes of the answers to fetch requests of the brokers, as they came over the network.",
			float64(w.FetchedBytes),
		},
		{"dead_letters_total", "Records that could not be processed.", float64(w.DeadLetters)},
		{"segments_total", "Segments replayed.", float64(w.Segments)},
		{"commits_total", "Live commits.", float64(w.Commits)},
		{"commit_retries_total", "Live transactions that were rolled back and retried.", float64(w.CommitRetries)},
		{"lease_losses_total", "Leases of segments and partitions lost to another agent.", float64(w.LeaseLosses)},
		{"faults_total", "Faults recorded.", float64(w.Faults)},
		{"throttled_seconds_total", "Time that brokers made this agent wait (quota throttling).", w.ThrottledSeconds},
	} {
		out <- prometheus.MustNewConstMetric(ofProcess(m.name, m.help), prometheus.CounterValue, m.value)
	}
}
