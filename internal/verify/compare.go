package verify

import (
	"fmt"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// tolerance is the largest relative difference between two floating-point results that counts as equal.
const tolerance = "1e-9"

// compared is one column of the query in both tables, where it is named c0, c1, ….
type compared struct {
	name string
	key  bool
	time bool
	json bool
	canon
}

// comparison builds the SQL that compares a version with its query. Its methods return DuckDB statements, except
// copySQL.
type comparison struct {
	columns []compared
	oracle  string
}

func newComparison(l job.Layout, oracle string) (*comparison, error) {
	times := map[string]bool{}
	for _, k := range l.Keys {
		times[k.Name] = k.Time
	}
	c := &comparison{oracle: oracle}
	for _, v := range l.View {
		if v.Computed || v.Loose {
			continue
		}
		form, err := canonOf(v.Name, v.Type)
		if v.Counts {
			form, err = countsCanon(), nil
		}
		if err != nil {
			return nil, err
		}
		c.columns = append(c.columns, compared{
			name: v.Name, key: v.Key, time: v.Key && times[v.Name], canon: form, json: v.Type == "jsonb" && !v.Counts,
		})
	}
	return c, nil
}

// copySQL returns the PostgreSQL statement that copies the served rows; rows is their SELECT.
func (c *comparison) copySQL(rows string) string {
	items := make([]string, len(c.columns))
	for i, col := range c.columns {
		items[i] = col.postgres("q." + pg.Ident(col.name))
	}
	return fmt.Sprintf("COPY (SELECT %s FROM (%s\n) AS q) TO STDOUT WITH (FORMAT text, ENCODING 'UTF8')",
		strings.Join(items, ", "), rows)
}

// served creates table served from the copied rows.
func (c *comparison) served() string {
	items := make([]string, len(c.columns))
	for i, col := range c.columns {
		value := fmt.Sprintf("CAST(%s AS %s)", column(i), col.load)
		if col.json { // the raw value is the text that PostgreSQL writes
			value = jsonPaths(column(i))
		}
		items[i] = value + " AS " + column(i)
	}
	return "CREATE TABLE served AS SELECT " + strings.Join(items, ", ") + " FROM source"
}

// expected returns the SELECT of the same columns from the log.
func (c *comparison) expected() string {
	items := make([]string, len(c.columns))
	for i, col := range c.columns {
		items[i] = fmt.Sprintf("%s AS %s", col.duck("o."+pg.Ident(col.name)), column(i))
	}
	return fmt.Sprintf("SELECT %s FROM (%s\n) AS o", strings.Join(items, ", "), c.oracle)
}

// timeKey returns the index of the time key, or -1.
func (c *comparison) timeKey() int {
	for i, col := range c.columns {
		if col.time {
			return i
		}
	}
	return -1
}

// timeOf returns a time key as a number of days or microseconds; NULL if it is infinite.
func (c *comparison) timeOf(i int) string { return fmt.Sprintf("TRY_CAST(%s AS BIGINT)", column(i)) }

func (c *comparison) keys() (names []string) {
	for i, col := range c.columns {
		if col.key {
			names = append(names, column(i))
		}
	}
	return names
}

// differing creates a table of the rows that are missing, unexpected or different. Rows stored twice count as
// unexpected.
func (c *comparison) differing() []string {
	on, same := []string{"s.one = e.one"}, []string{"true"}
	var items, extra []string
	for i, col := range c.columns {
		n := column(i)
		switch {
		case col.key:
			on = append(on, fmt.Sprintf("s.%s IS NOT DISTINCT FROM e.%[1]s", n))
			items = append(items, fmt.Sprintf("CASE WHEN s.one = 1 THEN s.%s ELSE e.%[1]s END AS %[1]s", n))
			extra = append(extra, n)
			continue
		case col.load == double:
			same = append(same, fmt.Sprintf(`(s.%[1]s IS NOT DISTINCT FROM e.%[1]s OR coalesce(isfinite(s.%[1]s) AND isfinite(e.%[1]s)
				AND abs(s.%[1]s - e.%[1]s) <= %[2]s * greatest(abs(s.%[1]s), abs(e.%[1]s)), false))`, n, tolerance))
		default:
			same = append(same, fmt.Sprintf("s.%s IS NOT DISTINCT FROM e.%[1]s", n))
		}
		items = append(items, fmt.Sprintf("s.%s AS s%[1]s, e.%[1]s AS e%[1]s", n))
		extra = append(extra, fmt.Sprintf("%s, NULL", n))
	}
	by := ""
	if keys := c.keys(); len(keys) > 0 {
		by = "PARTITION BY " + strings.Join(keys, ", ")
	}
	return []string{
		fmt.Sprintf(`CREATE TABLE differing AS SELECT s.one IS NOT NULL AS in_served, e.one IS NOT NULL AS in_expected, %s
			FROM (SELECT 1 AS one, * FROM served) AS s FULL OUTER JOIN (SELECT 1 AS one, * FROM expected) AS e ON %s
			WHERE s.one IS NULL OR e.one IS NULL OR NOT (%s)`,
			strings.Join(items, ", "), strings.Join(on, " AND "), strings.Join(same, " AND ")),
		fmt.Sprintf(`INSERT INTO differing SELECT true, false, %s
			FROM (SELECT *, row_number() OVER (%s) AS nth FROM served) WHERE nth > 1`, strings.Join(extra, ", "), by),
	}
}

// examples selects the first differences as text: in_served, in_expected, then each key, or the served and the expected
// value.
func (c *comparison) examples() string {
	items := []string{"CAST(in_served AS VARCHAR)", "CAST(in_expected AS VARCHAR)"}
	for i, col := range c.columns {
		if col.key {
			items = append(items, col.show(column(i)))
		} else {
			items = append(items, col.show("s"+column(i)), col.show("e"+column(i)))
		}
	}
	return fmt.Sprintf("SELECT %s FROM differing ORDER BY %s LIMIT %d", strings.Join(items, ", "),
		strings.Join(append(c.keys(), "in_served"), ", "), maxExamples)
}

// example parses one row of examples.
func (c *comparison) example(row []*string) Example {
	e := Example{Key: map[string]*string{}}
	inServed, inExpected := *row[0] == "true", *row[1] == "true"
	if inServed {
		e.Served = map[string]*string{}
	}
	if inExpected {
		e.Expected = map[string]*string{}
	}
	at := 2
	for _, col := range c.columns {
		if col.key {
			e.Key[col.name] = row[at]
			at++
			continue
		}
		if inServed {
			e.Served[col.name] = row[at]
		}
		if inExpected {
			e.Expected[col.name] = row[at+1]
		}
		at += 2
	}
	return e
}
