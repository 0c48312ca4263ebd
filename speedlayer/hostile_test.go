package speedlayer

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/kappactl/kappactl/internal/kafkatest"
)

// TestAHostileSpecInTheControlTableReachesNothing: who may write there, past check and deploy, gets an agent to read no file, to open
// no connection, to change no setting and to load no extension. The agent refuses the version and goes on.
func TestAHostileSpecInTheControlTableReachesNothing(t *testing.T) {
	t.Parallel()
	const secret = "canary-51c2"
	dir := t.TempDir()
	file := filepath.Join(dir, "secret.csv")
	if err := os.WriteFile(file, []byte("a\n"+secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	var knocks atomic.Int64
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			knocks.Add(1)
			_ = conn.Close()
		}
	}()
	r := newRig(t, kafkatest.Fake(t), 1, sums)
	r.produce(0, 0, 3)
	r.startLive()
	e := r.engine("a")
	path, url := "'"+file+"'", "'http://"+l.Addr().String()+"/x.parquet'"
	refused := func(what, at, value string) {
		t.Helper()
		args := refArgs(r.ref)
		args["path"], args["value"] = at, value
		exec(t, r.pool, `UPDATE kappactl.version SET spec = jsonb_set(spec, @path::text[], to_jsonb(@value::text)) WHERE job = @job AND number = @number`, args)
		_, err := e.load(t.Context(), r.ref) // Run tries it again until it succeeds, and starts nothing before
		switch {
		case err == nil:
			t.Errorf("taken: %s", what)
		case strings.Contains(err.Error(), secret):
			t.Errorf("the refusal of %s shows the secret: %v", what, err)
		}
	}
	for _, sql := range []string{
		"COPY source TO '" + dir + "/out.csv'", "COPY (SELECT * FROM read_text(" + path + ")) TO '" + dir + "/out.csv'", "ATTACH '" + dir + "/db' AS x", "INSTALL httpfs", "LOAD " + path,
		"SET enable_external_access = true", "RESET lock_configuration", "PRAGMA threads = 9", "CREATE SECRET s (TYPE s3)",
		"SELECT a AS k, count(*) AS n, 1 AS total, 1 AS low, 1 AS high FROM read_csv(" + path + ") GROUP BY k",
		"SELECT k, count(*) AS n, sum(v) AS total, min(v) AS low, max(v) AS high FROM (SELECT content AS k, 1 AS v FROM read_text(" + path + ")) AS s GROUP BY k",
		"SELECT k, count(*) AS n, sum(v) AS total, min(v) AS low, max(v) AS high FROM read_parquet(" + url + ") GROUP BY k",
		"SELECT getenv('HOME') AS k, count(*) AS n, sum(v) AS total, min(v) AS low, max(v) AS high FROM source GROUP BY k",
		"SELECT file AS k, count(*) AS n, 1 AS total, 1 AS low, 1 AS high FROM glob('" + dir + "/*') GROUP BY k",
		sums + "; COPY source TO '" + dir + "/out.csv'", sums + "; SET threads = 9",
	} {
		refused(sql, "{query}", sql)
	}
	args := refArgs(r.ref)
	args["spec"] = mustJSON(t, r.spec)
	exec(t, r.pool, `UPDATE kappactl.version SET spec = @spec::jsonb WHERE job = @job AND number = @number`, args)
	for _, typ := range []string{"bigint, x AS (FROM read_text(" + path + "))", "text) FROM read_text(" + path + ") --", "bigint); SET threads = 9; --"} {
		refused("type "+typ, "{source,columns,1,type}", typ)
	}
	if n := knocks.Load(); n != 0 {
		t.Errorf("%d connections were made", n)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 1 {
		t.Errorf("files were written: %v", left)
	}
	exec(t, r.pool, `UPDATE kappactl.version SET spec = @spec::jsonb WHERE job = @job AND number = @number`, args)
	r.agent("b", nil)
	r.caughtUp()
}
