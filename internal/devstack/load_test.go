package devstack

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafka"
	"github.com/kappactl/kappactl/internal/kafkatest"
)

// execute runs DuckDB SQL, to make files.
func execute(t *testing.T, sql string) {
	t.Helper()
	e, err := openEngine()
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if _, err := e.ExecContext(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func parquet(t *testing.T, query string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rows.parquet")
	execute(t, "COPY ("+query+") TO "+quoteText(path)+" (FORMAT parquet, ROW_GROUP_SIZE 30000)")
	return path
}

func file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// read returns the first n records of each partition.
func read(t *testing.T, brokers []string, topic string, n int) map[int32][]*kgo.Record {
	t.Helper()
	cl := kafkatest.Client(t, brokers, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	out, seen := map[int32][]*kgo.Record{}, 0
	for seen < n {
		fetches := cl.PollFetches(t.Context())
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			out[r.Partition] = append(out[r.Partition], r)
			seen++
		})
	}
	return out
}

func load(t *testing.T, brokers []string, c LoadConfig) Loaded {
	t.Helper()
	c.Kafka = kafka.Config{Brokers: brokers}
	loaded, err := Load(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

func values(records []*kgo.Record) []string {
	out := make([]string, len(records))
	for i, r := range records {
		out[i] = string(r.Value)
	}
	return out
}

func TestEveryParquetTypeKeepsItsValue(t *testing.T) {
	brokers := kafkatest.Fake(t)
	path := parquet(t, `SELECT true AS b, (-128)::TINYINT AS i1, 65535::USMALLINT AS u2, 9007199254740993::BIGINT AS i8,
		18446744073709551615::UBIGINT AS u8, 1234567890123456789012.34::DECIMAL(30,2) AS big, 1.10::DECIMAL(5,2) AS small,
		0.1::DOUBLE AS d, 1e300::DOUBLE AS huge, 2.5::FLOAT AS f, 'nan'::DOUBLE AS nan, '-inf'::DOUBLE AS inf,
		'a"b\c' || chr(10) || 'd' || chr(1) || 'ü' AS s, DATE '2001-02-03' AS day, TIME '04:05:06.7' AS at,
		TIMESTAMP '2001-02-03 04:05:06' AS ts, TIMESTAMP '2001-02-03 04:05:06.123456' AS us,
		TIMESTAMPTZ '2001-02-03 04:05:06+02' AS tz, TIMESTAMP_NS '2001-02-03 04:05:06.123456789' AS ns,
		'\xDE\xAD'::BLOB AS bytes, 'b0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::UUID AS id,
		[1, NULL, 3] AS list, {'x': 1, 'y': 'z'} AS struct, NULL::BIGINT AS none, '{"k": [1.50]}'::JSON AS js`)
	load(t, brokers, LoadConfig{File: path, Topic: "types", Partitions: 1})
	got := values(read(t, brokers, "types", 1)[0])
	want := []string{`{"b":true,"i1":-128,"u2":65535,"i8":9007199254740993,"u8":18446744073709551615,` +
		`"big":1234567890123456789012.34,"small":1.10,"d":0.1,"huge":1e+300,"f":2.5,"nan":"NaN","inf":"-Infinity",` +
		`"s":"a\"b\\c\nd\u0001ü","day":"2001-02-03","at":"04:05:06.7","ts":"2001-02-03T04:05:06","us":"2001-02-03T04:05:06.123456",` +
		`"tz":"2001-02-03T02:05:06Z","ns":"2001-02-03T04:05:06.123456789","bytes":"3q0=","id":"b0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",` +
		`"list":[1,null,3],"struct":{"x":1,"y":"z"},"none":null,"js":{"k": [1.50]}}`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if !json.Valid([]byte(got[0])) {
		t.Error("not JSON")
	}
}

func TestCSVKeepsDigitsAndTellsKindsFromTheWholeFile(t *testing.T) {
	brokers := kafkatest.Fake(t)
	content := "n,zip,price,ok,ts,day,name,late,\"odd \"\"one\"\"\"\n" +
		"1,00501,1.10,true,2001-02-03 04:05:06,2001-02-03,\"Smith, \"\"J\"\"\",1,x\n" +
		",10001,12345678901234567890.5,FALSE,2001-02-03T04:05:06.5Z,,,2,\n" +
		"-7,2,3e5,,2001-02-03 04:05:06+02:00,2001-02-04,ü,three,z\n"
	load(t, brokers, LoadConfig{File: file(t, "rows.csv", content), Topic: "csv", Partitions: 1})
	want := []string{
		`{"n":1,"zip":"00501","price":1.10,"ok":true,"ts":"2001-02-03T04:05:06","day":"2001-02-03","name":"Smith, \"J\"","late":"1","odd \"one\"":"x"}`,
		`{"n":null,"zip":"10001","price":12345678901234567890.5,"ok":false,"ts":"2001-02-03T04:05:06.5Z","day":null,"name":null,"late":"2","odd \"one\"":null}`,
		`{"n":-7,"zip":"2","price":3e5,"ok":null,"ts":"2001-02-03T04:05:06+02:00","day":"2001-02-04","name":"ü","late":"three","odd \"one\"":"z"}`,
	}
	if diff := cmp.Diff(want, values(read(t, brokers, "csv", 3)[0])); diff != "" {
		t.Error(diff)
	}
}

func TestNDJSONPassesUnchanged(t *testing.T) {
	brokers := kafkatest.Fake(t)
	lines := []string{`{"a": 1.10, "t":"2001-02-03T04:05:06Z"}`, `{"a":123456789012345678901234567890}`, `{ "b" : {"c":null} }`}
	content := "\xef\xbb\xbf" + lines[0] + "\n\n" + lines[1] + "\r\n" + lines[2]
	load(t, brokers, LoadConfig{File: file(t, "rows.ndjson", content), Topic: "plain", Partitions: 1})
	if diff := cmp.Diff(lines, values(read(t, brokers, "plain", 3)[0])); diff != "" {
		t.Error(diff)
	}
	zipped := filepath.Join(t.TempDir(), "rows.jsonl.gz")
	f, err := os.Create(zipped)
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(f)
	_, err = z.Write([]byte(content))
	if err := errors.Join(err, z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	load(t, brokers, LoadConfig{File: zipped, Topic: "zipped", Partitions: 1})
	if diff := cmp.Diff(lines, values(read(t, brokers, "zipped", 3)[0])); diff != "" {
		t.Error(diff)
	}
}

func TestRowsWithoutKeyGoToPartitionsInTurnAndInOrder(t *testing.T) {
	brokers := kafkatest.Fake(t)
	path := parquet(t, "SELECT range AS i FROM range(20000)")
	loaded := load(t, brokers, LoadConfig{File: path, Topic: "turns", Partitions: 3, Limit: 10001})
	if loaded.Records != 10001 || loaded.Partitions != 3 || !loaded.Created {
		t.Errorf("loaded %+v", loaded)
	}
	for p, records := range read(t, brokers, "turns", 10001) {
		for i, r := range records {
			if want := fmt.Sprintf(`{"i":%d}`, i*3+int(p)); string(r.Value) != want || r.Key != nil {
				t.Fatalf("partition %d, offset %d: key %q value %s, want %s", p, r.Offset, r.Key, r.Value, want)
			}
		}
	}
}

// TestKeyGivesThePartitionOfJavasProducer: the numbers are those of Kafka's murmur2, modulo 4.
func TestKeyGivesThePartitionOfJavasProducer(t *testing.T) {
	brokers := kafkatest.Fake(t)
	content := `{"id":"21","n":1}` + "\n" + `{"id":"foobar","n":2}` + "\n" + `{"id":"a-little-bit-long-string","n":3}` + "\n" + `{"n":4}` + "\n" + `{"id":21,"n":5}` + "\n"
	load(t, brokers, LoadConfig{File: file(t, "rows.jsonl", content), Topic: "keyed", Partitions: 4, Key: "id"})
	want := map[string]int32{"21": murmur(-973932308), "foobar": murmur(-790332482), "a-little-bit-long-string": murmur(-985981536)}
	seen := 0
	for p, records := range read(t, brokers, "keyed", 5) {
		for _, r := range records {
			seen++
			if r.Key == nil {
				if !strings.Contains(string(r.Value), `"n":4`) {
					t.Errorf("no key on %s", r.Value)
				}
				continue
			}
			if at, ok := want[string(r.Key)]; !ok || at != p {
				t.Errorf("key %q on partition %d, want %d", r.Key, p, at)
			}
		}
	}
	if seen != 5 {
		t.Errorf("%d records", seen)
	}
}

func murmur(hash int32) int32 { return (hash & 0x7fffffff) % 4 }

func TestColumnKeys(t *testing.T) {
	brokers := kafkatest.Fake(t)
	path := parquet(t, `SELECT * FROM (VALUES (1, 'a"b'), (2, NULL), (3, 'c')) AS v(n, id)`)
	load(t, brokers, LoadConfig{File: path, Topic: "names", Partitions: 1, Key: "id"})
	load(t, brokers, LoadConfig{File: path, Topic: "numbers", Partitions: 1, Key: "n"})
	var got []string
	for _, topic := range []string{"names", "numbers"} {
		for _, r := range read(t, brokers, topic, 3)[0] {
			got = append(got, string(r.Key))
		}
	}
	if diff := cmp.Diff([]string{`a"b`, "", "c", "1", "2", "3"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestFlightsLoadWhole(t *testing.T) { kafkatest.Each(t, flightsLoadWhole) }

func flightsLoadWhole(t *testing.T, brokers []string) {
	const n = 60_000
	topic := kafkatest.Name("flights")
	path := parquet(t, fmt.Sprintf(`SELECT TIMESTAMP '2001-01-01' + to_minutes(range) AS date, (hash(range) %% 200)::BIGINT - 20 AS delay,
		(hash(range) %% 2000)::BIGINT AS distance, 'A' || (range %% 97) AS origin, 'B' || (range %% 89) AS destination FROM range(%d)`, n))
	var last Loaded
	loaded := load(t, brokers, LoadConfig{File: path, Topic: topic, Key: "origin", Progress: func(l Loaded) { last = l }})
	if loaded.Records != n || loaded.Partitions != defaultPartitions || last.Records > n {
		t.Fatalf("loaded %+v, progress %+v", loaded, last)
	}
	count, sum, bytes := 0, 0, int64(0)
	for p, records := range read(t, brokers, topic, n) {
		previous := ""
		for _, r := range records {
			var v struct {
				Date, Origin string
				Delay        int
			}
			if err := json.Unmarshal(r.Value, &v); err != nil {
				t.Fatal(err)
			}
			if v.Date <= previous || v.Origin != string(r.Key) {
				t.Fatalf("partition %d: %s after %s, key %s", p, r.Value, previous, r.Key)
			}
			previous = v.Date
			count, sum, bytes = count+1, sum+v.Delay, bytes+int64(len(r.Key)+len(r.Value))
		}
	}
	want := oracle(t, "SELECT sum(delay)::VARCHAR FROM "+parquetFile.relation(path))
	if count != n || fmt.Sprint(sum) != want || bytes != loaded.Bytes {
		t.Errorf("%d records, sum %d, %d bytes; want %d, %s, %d", count, sum, bytes, n, want, loaded.Bytes)
	}
}

func oracle(t *testing.T, sql string) string {
	t.Helper()
	e, err := openEngine()
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	var out string
	if err := e.QueryRowContext(t.Context(), sql).Scan(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestOldRecordsStayInATopicThatLoadMakes(t *testing.T) { kafkatest.Each(t, oldRecordsStay) }

func oldRecordsStay(t *testing.T, brokers []string) {
	topic := kafkatest.Name("kept")
	load(t, brokers, LoadConfig{File: file(t, "r.ndjson", "{}\n"), Topic: topic})
	admin, err := kafka.NewAdmin(kafka.Config{Brokers: brokers})
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	facts, err := admin.Topics(t.Context(), []string{topic})
	if err != nil || facts[0].RetentionMS != -1 || len(facts[0].Partitions) != 4 {
		t.Errorf("%+v, %v", facts, err)
	}
}

func TestRateBoundsTheSpeed(t *testing.T) {
	brokers := kafkatest.Fake(t)
	began := time.Now()
	loaded := load(t, brokers, LoadConfig{File: parquet(t, "SELECT range AS i FROM range(1000)"), Topic: "slow", Rate: 2000, Limit: 800})
	if took := time.Since(began); loaded.Records != 800 || took < 350*time.Millisecond {
		t.Errorf("%d records in %s", loaded.Records, took)
	}
}

func TestCancelledLoadSaysSoAndCountsWhatIsThere(t *testing.T) {
	brokers := kafkatest.Fake(t)
	ctx, cancel := context.WithCancel(t.Context())
	c := LoadConfig{Kafka: kafka.Config{Brokers: brokers}, File: parquet(t, "SELECT range AS i FROM range(100000)"), Topic: "t", Rate: 1000}
	c.Progress = func(Loaded) { cancel() }
	loaded, err := Load(ctx, c)
	if !errors.Is(err, context.Canceled) || loaded.Records >= 100000 {
		t.Errorf("%+v, %v", loaded, err)
	}
}

func TestRefusedLoads(t *testing.T) {
	brokers := kafkatest.Fake(t)
	kafkatest.CreateTopic(t, brokers, "two", 2, nil)
	good := file(t, "good.ndjson", `{"a":1}`+"\n")
	table := parquet(t, "SELECT 1 AS a, 2 AS b")
	for name, c := range map[string]struct {
		config      LoadConfig
		cause, next string
	}{
		"no such file":          {LoadConfig{File: "/nowhere.parquet", Topic: "t"}, "there is no file /nowhere.parquet", ""},
		"folder":                {LoadConfig{File: t.TempDir(), Topic: "t"}, "is a folder", ""},
		"empty file":            {LoadConfig{File: file(t, "empty.csv", ""), Topic: "t"}, "is empty", ""},
		"header only":           {LoadConfig{File: file(t, "header.csv", "a,b\n"), Topic: "t"}, "holds no rows", ""},
		"blank lines only":      {LoadConfig{File: file(t, "blank.ndjson", "\n\n"), Topic: "t"}, "holds no rows", ""},
		"Parquet without rows":  {LoadConfig{File: parquet(t, "SELECT 1 AS a WHERE false"), Topic: "t"}, "holds no rows", ""},
		"unknown extension":     {LoadConfig{File: file(t, "rows.xlsx", "x"), Topic: "t"}, "unknown kind of file", "convert"},
		"no Parquet":            {LoadConfig{File: file(t, "bad.parquet", "no parquet at all"), Topic: "t"}, "bad.parquet cannot be read", ""},
		"JSON array":            {LoadConfig{File: file(t, "rows.json", `[{"a":1}]`), Topic: "t"}, "is a JSON array", "jq -c '.[]'"},
		"broken line":           {LoadConfig{File: file(t, "x.ndjson", "{}\n{\"a\":\n"), Topic: "t"}, "x.ndjson:2: not a JSON object", ""},
		"no gzip":               {LoadConfig{File: file(t, "x.ndjson.gz", "{}\n"), Topic: "t"}, "not a gzip file", ""},
		"unknown column":        {LoadConfig{File: table, Topic: "t", Key: "c"}, `has no column "c"`, "a, b"},
		"unknown field":         {LoadConfig{File: good, Topic: "t", Key: "c"}, `no field "c"`, ""},
		"other partition count": {LoadConfig{File: good, Topic: "two", Partitions: 3}, "topic two has 2 partitions, not 3", "--partitions"},
		"bad topic name":        {LoadConfig{File: good, Topic: "a b"}, `"a b" is not a valid topic name`, ""},
		"no topic":              {LoadConfig{File: good}, "no topic", "--topic"},
		"negative limit":        {LoadConfig{File: good, Topic: "t", Limit: -1}, "--limit -1", ""},
		"record over the limit": {LoadConfig{File: file(t, "big.ndjson", `{"a":"`+strings.Repeat("x", 2<<20)+`"}`), Topic: "t"}, "row 1 of", "max.message.bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			c.config.Kafka = kafka.Config{Brokers: brokers}
			loaded, err := Load(t.Context(), c.config)
			var refusal *job.Refusal
			if !errors.As(err, &refusal) {
				t.Fatalf("%+v, error %v", loaded, err)
			}
			if refusal.Code != job.ExitUsage || !strings.Contains(refusal.Cause, c.cause) || !strings.Contains(refusal.Next, c.next) || strings.Contains(refusal.Cause, "\n") {
				t.Errorf("code %d, cause %q, next %q", refusal.Code, refusal.Cause, refusal.Next)
			}
		})
	}
}

func TestNoBrokerIsAConnectError(t *testing.T) {
	_, err := Load(t.Context(), LoadConfig{Kafka: kafka.Config{Brokers: []string{"127.0.0.1:1"}}, File: file(t, "r.ndjson", "{}\n"), Topic: "t"})
	var connect *kafka.ConnectError
	if !errors.As(err, &connect) {
		t.Errorf("error %v", err)
	}
}
