package archive

import (
	"encoding/hex"
	"fmt"
	"path"
	"regexp"
	"strconv"

	"github.com/kappactl/kappactl/internal/job"
)

// hashDigits is how many hexadecimal digits of its hash a name holds.
const hashDigits = 16

// FileName is the name of a file below its location: TOPIC/TOPIC-ID/PARTITION/FROM-TO-HASH.parquet.
func FileName(p job.Partition, r job.Range, sha256 []byte) string {
	return fmt.Sprintf("%s/%d/%d-%d-%s.parquet", Folder(p.Topic, p.TopicID), p.ID, r.From, r.To,
		hex.EncodeToString(sha256)[:hashDigits])
}

// Folder is where the files of a topic are, below their location: TOPIC/TOPIC-ID.
func Folder(topic string, id job.TopicID) string { return path.Join(topic, id.String()) }

// TypedFolder begins the names of the folders in that of a topic that hold typed columns, see internal/typed.
const TypedFolder = "typed-"

var namePattern = regexp.MustCompile(`^([^/]+)/([0-9a-f-]{36})/([0-9]{1,10})/([0-9]{1,19})-([0-9]{1,19})-([0-9a-f]{16})\.parquet$`)

// ParseName reads what FileName wrote; ok is false for every other name.
func ParseName(name string) (p job.Partition, r job.Range, digits string, ok bool) {
	m := namePattern.FindStringSubmatch(name)
	if m == nil {
		return p, r, "", false
	}
	id, err := job.ParseTopicID(m[2])
	partition, err1 := strconv.ParseInt(m[3], 10, 32)
	from, err2 := strconv.ParseInt(m[4], 10, 64)
	to, err3 := strconv.ParseInt(m[5], 10, 64)
	if err != nil || err1 != nil || err2 != nil || err3 != nil || from >= to {
		return p, r, "", false
	}
	return job.Partition{Topic: m[1], TopicID: id, ID: int32(partition)}, job.Range{From: from, To: to}, m[6], true
}
