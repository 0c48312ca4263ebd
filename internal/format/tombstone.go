package format

import "github.com/twmb/franz-go/pkg/kgo"

// tombstoneField is the meta column that is true for records without a value. A decoder with this field accepts such
// records as rows whose declared columns are NULL; other decoders reject them.
const tombstoneField = "_tombstone"

func (d *Decoder) appendTombstone(rec *kgo.Record) *Reject {
	if r := judge(rec); r != nil {
		return r
	}
	d.AppendNull(rec)
	return nil
}

// AppendNull adds a row in which every declared column is NULL, whatever the record's value is.
func (d *Decoder) AppendNull(rec *kgo.Record) {
	for i := range d.fields {
		if f := &d.fields[i]; f.source >= 0 {
			f.append(&cell{null: true})
		} else {
			d.appendMeta(f, rec)
		}
	}
	d.grow(rec)
}
