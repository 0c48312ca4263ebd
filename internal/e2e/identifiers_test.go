package e2e_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/kafkatest"
	"github.com/kappactl/kappactl/internal/pg"
)

// identifiers are the names of testdata/identifiers.txt.
func identifiers(t *testing.T) (names []string) {
	t.Helper()
	f, err := os.Open("testdata/identifiers.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if line := lines.Text(); !strings.HasPrefix(line, "# ") {
			names = append(names, line)
		}
	}
	return names
}

// yamlText writes a text as YAML takes it: JSON is YAML.
func yamlText(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }

// wide is a job whose source columns, keys and aggregates have these names.
func wide(t *testing.T, job, topic, view string, keys, values []string, where string) string {
	t.Helper()
	columns, items := map[string]string{}, []string{}
	var group []string
	for _, k := range keys {
		columns[k] = "text"
		items, group = append(items, quote(k)), append(group, quote(k))
	}
	for _, v := range values {
		columns[v] = "bigint"
		items = append(items, fmt.Sprintf("sum(%s) AS %s", quote(v), quote(v)))
	}
	query := fmt.Sprintf("SELECT %s FROM source WHERE %s GROUP BY %s", strings.Join(items, ", "), where, strings.Join(group, ", "))
	return fmt.Sprintf("job: %s\nsource: {topics: [%s], columns: %s}\nquery: %s\nserve: {view: %s}\nready: {max_lag_time: 5s, stable_for: 0s}\nlive: {every: 20ms}\n",
		job, topic, yamlText(t, columns), yamlText(t, query), yamlText(t, view))
}

// TestNamesOfEveryKind runs the whole life of jobs whose fields, keys and aggregates have awkward names, and makes a view of
// each name.
func TestNamesOfEveryKind(t *testing.T) {
	t.Parallel()
	names := identifiers(t)
	brokers := kafkatest.Fake(t)
	w := newWorld(t, brokers)
	if _, err := w.pool.Exec(t.Context(), `CREATE SCHEMA "My.Schema "`); err != nil {
		t.Fatal(err)
	}
	topic := kafkatest.Name("names")
	kafkatest.Topic(t, brokers, topic, 1, nil)
	half := len(names) / 2
	record := func(key string, keys, values []string) string {
		fields := map[string]any{}
		for _, k := range keys {
			fields[k] = key
		}
		for i, v := range values {
			fields[v] = i
		}
		return yamlText(t, fields)
	}
	w.serve()
	for round, c := range []struct{ keys, values []string }{{names[:half], names[half:]}, {names[half:], names[:half]}} {
		topic := kafkatest.Name("wide")
		kafkatest.Topic(t, brokers, topic, 1, nil)
		kafkatest.Produce(t, brokers, topic, 0, record("a", c.keys, c.values), record("b", c.keys, c.values), record("a", c.keys, c.values))
		job := fmt.Sprintf("wide%d", round)
		view := `"My.Schema "."the ""view"" of ` + job + `"`
		w.ok("deploy", w.file("v1.yaml", wide(t, job, topic, view, c.keys, c.values, "true")))
		w.ok("deploy", w.file("v2.yaml", wide(t, job, topic, view, c.keys, c.values, quote(c.keys[0])+" <> 'none'")))
		w.ok("promote", job)
		kafkatest.Produce(t, brokers, topic, 0, record("c", c.keys, c.values))
		w.caughtUp(job)
		w.equal(job)
		w.ok("rollback", job)
		w.caughtUp(job)
		w.equal(job)
		w.ok("promote", job, "v2")
		w.ok("retire", job, "v1", "--now", "--yes")
		for i, v := range c.values {
			var sum int
			sql := fmt.Sprintf("SELECT %s::bigint FROM %s WHERE %s = 'a'", quote(v), view, quote(c.keys[i%len(c.keys)]))
			if err := w.pool.QueryRow(t.Context(), sql).Scan(&sum); err != nil || sum != 2*i {
				t.Errorf("%s: %d, %v, want %d", sql, sum, err, 2*i)
			}
		}
	}
	kafkatest.Produce(t, brokers, topic, 0, `{"k":"a","v":1}`)
	for i, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := *w
			v.t = t
			job := fmt.Sprintf("view%d", i)
			v.ok("deploy", v.file(job+".yaml", wide(t, job, topic, quote(name), []string{"k"}, []string{"v"}, "true")))
			var n int
			if err := v.pool.QueryRow(t.Context(), "SELECT count(*) FROM public."+pg.Ident(name)).Scan(&n); err != nil || n != 1 {
				t.Errorf("%d rows, %v", n, err)
			}
			v.ok("status", job)
		})
	}
}
