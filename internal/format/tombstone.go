package format

import "github.com/twmb/franz-go/pkg/kgo"

// tombstoneField is the meta column that is true for records without a value. A decoder with this field accepts such
// records as rows whose declared columns are NULL; other decoders reject them.
const tombstoneField = "_tombstone"

func (d *Decoder) appendTombstone(rec *kgo.Record) *Reject {
	if r := judge(rec); r != nil {
		return r
	}
	for i := range d.fields {
		if f := &d.fields[i]; f.source >= 0 {
			f.append(&cell{null: true})
		} else {
			f.appendMeta(rec)
		}
	}
	d.length++
	return nil
}
