package httpapi

import (
	"context"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

// Archived is the state of one archived partition. nil values are unknown and not exported.
type Archived struct {
	Topic            string
	Partition        int32
	State            string
	Behind           *int64   // offsets of the log that are not archived
	RetentionSeconds *float64 // seconds until retention may delete offsets that are not archived
	Records, Bytes   int64    // in the archive
}

func ofArchive(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("kappactl_archive_"+name, help, append([]string{"topic", "partition"}, labels...), nil)
}

// archives exports the metrics of archived partitions.
func (c collector) archives(ctx context.Context, out chan<- prometheus.Metric) {
	if c.s.deps.Archived == nil {
		return
	}
	found, err := c.s.deps.Archived(ctx)
	if err != nil {
		return // database_up reports it
	}
	for _, a := range found {
		gauge := func(d *prometheus.Desc, value float64, labels ...string) {
			out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value,
				append([]string{a.Topic, strconv.Itoa(int(a.Partition))}, labels...)...)
		}
		gauge(ofArchive("state", "1 for the current state of a partition's archive.", "state"), 1, a.State)
		gauge(ofArchive("records", "Records in a partition's archive."), float64(a.Records))
		gauge(ofArchive("bytes", "Bytes of a partition's archive files."), float64(a.Bytes))
		if a.Behind != nil {
			gauge(ofArchive("behind_offsets", "Offsets of the log that are not archived yet."), float64(*a.Behind))
		}
		if a.RetentionSeconds != nil {
			gauge(ofArchive("retention_seconds", "Time until retention may delete records that are not archived yet."),
				*a.RetentionSeconds)
		}
	}
}
