package doctor

import (
	"crypto/tls"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kappactl/kappactl/internal/certtest"
	"github.com/kappactl/kappactl/internal/config"
	"github.com/kappactl/kappactl/internal/kafka"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/pgtest"
)

func TestDoctorWarnsOfPasswordFilesThatOthersRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "password")
	for mode, health := range map[os.FileMode]Health{
		0o600: OK, 0o400: OK, 0o640: OK, 0o644: Warning, 0o604: Warning,
		0o660: Warning,
	} {
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		for what, s := range map[string]config.Settings{
			"database": {Password: config.Source{File: path}},
			"brokers":  {Kafka: config.Kafka{SASL: config.SASL{Password: config.Source{File: path}}}},
			"key":      {Kafka: config.Kafka{TLS: config.TLS{KeyFile: path}}},
		} {
			got := found(t, func(e *examination) { e.settings = s; e.passwordFiles() })
			if got.Health != health {
				t.Errorf("%s, mode %o: %+v", what, mode, got)
			}
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDoctorTellsWhetherTheBrokersAreEncrypted(t *testing.T) {
	for _, c := range []struct {
		k      kafka.Config
		health Health
	}{
		{kafka.Config{Brokers: []string{"127.0.0.1:9092", "[::1]:9092", "localhost:9092"}}, OK},
		{kafka.Config{Brokers: []string{"127.0.0.1:9092", "kafka.example:9092"}}, Warning},
		{kafka.Config{Brokers: []string{"kafka.example:9092"}, TLS: &tls.Config{MinVersion: tls.VersionTLS12}}, OK},
	} {
		if got := found(t, func(e *examination) { e.brokerEncryption(c.k) }); got.Health != c.health {
			t.Errorf("%v: %+v", c.k.Brokers, got)
		}
	}
}

func TestDoctorTellsWhetherTheDatabaseIsVerified(t *testing.T) {
	files := certtest.Make(t, "client", "localhost")
	dsn := pgtest.WithTLS(t, files)
	for mode, want := range map[string]string{
		"verify-full sslrootcert=" + files.CA: "name and certificate are verified", "verify-ca sslrootcert=" +
			files.CA: "its name is not",
		"require": "nothing proves", "prefer": "nothing proves",
	} {
		pool, err := pg.Open(t.Context(), pg.Config{DSN: withTLS(t, dsn, mode)})
		if err != nil {
			t.Fatal(err)
		}
		got := found(t, func(e *examination) { e.pool = pool; e.encryption(t.Context()) })
		if !strings.Contains(got.Detail, want) || (got.Health == OK) == strings.Contains(got.Detail, "nothing proves") {
			t.Errorf("sslmode=%s: %+v", mode, got)
		}
		pool.Close()
	}
}

// withTLS is a connection string for host localhost with an sslmode, and perhaps sslrootcert=FILE behind it.
func withTLS(t *testing.T, dsn, mode string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = "localhost:" + u.Port()
	q := u.Query()
	mode, root, found := strings.Cut(mode, " sslrootcert=")
	q.Set("sslmode", mode)
	if found {
		q.Set("sslrootcert", root)
	}
	u.RawQuery = q.Encode()
	return u.String()
}
