package archive

import (
	"fmt"
	"strconv"

	"github.com/apache/arrow-go/v18/parquet/metadata"

	"github.com/kappactl/kappactl/internal/job"
)

// Footer is what a file holds about itself, in the key-value metadata of its Parquet footer.
type Footer struct {
	Cluster string // Kafka's cluster id
	job.Partition
	job.Range
	Records     int64
	LeaderEpoch int32 // under which the log was seen to reach up to To; -1: unknown
}

// The keys of a footer.
const (
	keyFormat      = "kappactl.format"
	keyCluster     = "kappactl.cluster"
	keyTopic       = "kappactl.topic"
	keyTopicID     = "kappactl.topic_id"
	keyPartition   = "kappactl.partition"
	keyFrom        = "kappactl.from"
	keyTo          = "kappactl.to"
	keyRecords     = "kappactl.records"
	keyLeaderEpoch = "kappactl.leader_epoch"

	formatRaw = "raw/1"
)

// pairs are the footer's keys and values in the order in which they are written.
func (f Footer) pairs() [][2]string {
	return [][2]string{
		{keyFormat, formatRaw},
		{keyCluster, f.Cluster},
		{keyTopic, f.Topic},
		{keyTopicID, f.TopicID.String()},
		{keyPartition, strconv.Itoa(int(f.ID))},
		{keyFrom, strconv.FormatInt(f.From, 10)},
		{keyTo, strconv.FormatInt(f.To, 10)},
		{keyRecords, strconv.FormatInt(f.Records, 10)},
		{keyLeaderEpoch, strconv.Itoa(int(f.LeaderEpoch))},
	}
}

// parseFooter reads the footer of a file.
func parseFooter(kv metadata.KeyValueMetadata) (Footer, error) {
	var f Footer
	var err error
	number := func(key string, bits int) int64 {
		text := kv.FindValue(key)
		if text == nil {
			err = fmt.Errorf("the footer has no %s", key)
			return 0
		}
		n, e := strconv.ParseInt(*text, 10, bits)
		if e != nil {
			err = fmt.Errorf("the footer's %s is %q", key, *text)
		}
		return n
	}
	text := func(key string) string {
		if v := kv.FindValue(key); v != nil {
			return *v
		}
		err = fmt.Errorf("the footer has no %s", key)
		return ""
	}
	if format := text(keyFormat); err == nil && format != formatRaw {
		return f, fmt.Errorf("the file has format %q, this release reads %q", format, formatRaw)
	}
	f.Cluster, f.Topic = text(keyCluster), text(keyTopic)
	f.ID, f.LeaderEpoch = int32(number(keyPartition, 32)), int32(number(keyLeaderEpoch, 32)) //nolint:gosec // parsed as 32 bits
	f.From, f.To, f.Records = number(keyFrom, 64), number(keyTo, 64), number(keyRecords, 64)
	id, e := job.ParseTopicID(text(keyTopicID))
	if err == nil {
		err = e
	}
	f.TopicID = id
	return f, err
}
