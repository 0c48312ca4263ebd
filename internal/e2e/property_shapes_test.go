package e2e_test

import "fmt"

// event is a record of the property test.
type event struct {
	k   *string
	v   *int64
	seq int64 // never twice: which record is the latest is never in doubt
}

func (e event) value() []byte {
	k, v := "null", "null"
	if e.k != nil {
		k = fmt.Sprintf("%q", *e.k)
	}
	if e.v != nil {
		v = fmt.Sprint(*e.v)
	}
	return fmt.Appendf(nil, `{"k":%s,"v":%s,"seq":%d}`, k, v, e.seq)
}

func (e event) key() string {
	if e.k == nil {
		return "~"
	}
	return *e.k
}

// shape is a kind of job with the naive answer to it: one pass over the records that pass v >= least, one line a row.
type shape struct {
	query, serve, line string
	naive              func(passing []event) []string
}

func shapes() map[string]shape {
	return map[string]shape{
		"rollup": {
			query: `SELECT k, count(*) AS n, sum(v) AS total, max(v) AS high FROM source WHERE v >= %d GROUP BY k`,
			line:  `concat_ws('|', coalesce(k, '~'), n, total, high)`,
			naive: func(passing []event) []string {
				type sums struct{ n, total, high int64 }
				by := map[string]sums{}
				for _, e := range passing {
					s, seen := by[e.key()]
					if !seen {
						s.high = *e.v
					}
					by[e.key()] = sums{s.n + 1, s.total + *e.v, max(s.high, *e.v)}
				}
				var out []string
				for k, s := range by {
					out = append(out, fmt.Sprintf("%s|%d|%d|%d", k, s.n, s.total, s.high))
				}
				return out
			},
		},
		"rollup without keys": {
			query: `SELECT count(*) AS n, sum(v) AS total FROM source WHERE v >= %d`,
			line:  `concat_ws('|', n, coalesce(total, 0))`,
			naive: func(passing []event) []string {
				var total int64
				for _, e := range passing {
					total += *e.v
				}
				return []string{fmt.Sprintf("%d|%d", len(passing), total)}
			},
		},
		"append": {
			query: `SELECT k, v, seq FROM source WHERE v >= %d`,
			line:  `concat_ws('|', coalesce(k, '~'), v, seq)`,
			naive: func(passing []event) []string {
				var out []string
				for _, e := range passing {
					out = append(out, fmt.Sprintf("%s|%d|%d", e.key(), *e.v, e.seq))
				}
				return out
			},
		},
		"upsert": {
			query: `SELECT coalesce(k, '~') AS k, v, seq FROM source WHERE v >= %d`,
			serve: `, key: [k], order_by: seq`,
			line:  `concat_ws('|', k, v, seq)`,
			naive: func(passing []event) []string {
				latest := map[string]event{}
				for _, e := range passing {
					if have, ok := latest[e.key()]; !ok || e.seq > have.seq {
						latest[e.key()] = e
					}
				}
				var out []string
				for k, e := range latest {
					out = append(out, fmt.Sprintf("%s|%d|%d", k, *e.v, e.seq))
				}
				return out
			},
		},
	}
}
