package archive_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/archive"
	"github.com/kappactl/kappactl/internal/s3test"
)

func open(t *testing.T, s archive.S3, location string) archive.Location {
	t.Helper()
	locations := &archive.Locations{S3: s}
	t.Cleanup(locations.Close)
	l, err := locations.Open(location)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// stored writes a local file.
func stored(t *testing.T, text []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func readAll(ctx context.Context, l archive.Location, name string) ([]byte, error) {
	r, err := l.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(r)
	return text, errors.Join(err, r.Close())
}

func TestABucketKeepsFiles(t *testing.T) {
	t.Parallel()
	g := s3test.Start(t)
	name, folder := g.Bucket(t)
	for location, files := range map[string]string{"s3://" + name: folder, "s3://" + name + "/some/prefix": filepath.Join(folder, "some", "prefix")} {
		l := open(t, g.S3(), location)
		if err := l.Reach(t.Context()); err != nil {
			t.Fatal(err)
		}
		large := make([]byte, 20<<20) // the library would send it in parts
		_, _ = rand.Read(large)       // it has no error
		want := map[string][]byte{"t/id/0/a": []byte("text"), "t/id/1/large": large, "t/other/0/b": []byte("b")}
		for file, text := range want {
			if err := l.Put(t.Context(), file, stored(t, text)); err != nil {
				t.Fatal(err)
			}
			if got, err := readAll(t.Context(), l, file); err != nil || !bytes.Equal(got, text) {
				t.Errorf("%s: %d bytes, %v", file, len(got), err)
			}
		}
		want["t/id/0/empty"] = nil
		if err := os.WriteFile(filepath.Join(files, "t/id/0/empty"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := readAll(t.Context(), l, "t/id/0/empty"); err != nil || len(got) > 0 {
			t.Errorf("an empty file: %q, %v", got, err)
		}
		var names []string
		for e, err := range l.List(t.Context(), "t/id") {
			if err != nil {
				t.Fatal(err)
			}
			if names = append(names, e.Name); e.Bytes != int64(len(want[e.Name])) {
				t.Errorf("%+v", e)
			}
		}
		if slices.Sort(names); !slices.Equal(names, []string{"t/id/0/a", "t/id/0/empty", "t/id/1/large"}) {
			t.Errorf("listed %q", names)
		}
		for range 2 { // a file that is gone is no error
			if err := l.Delete(t.Context(), "t/id/0/a"); err != nil {
				t.Error(err)
			}
		}
		if _, err := readAll(t.Context(), l, "t/id/0/a"); !archive.Missing(err) {
			t.Errorf("a file that was deleted: %v", err)
		}
	}
}

// Each mistake in the settings gives one message that names it, whatever is asked for, and no secret.
func TestMistakesInTheSettingsOfABucketAreNamed(t *testing.T) {
	t.Parallel()
	g := s3test.Start(t)
	name, _ := g.Bucket(t)
	notTLS := g.S3()
	notTLS.Endpoint = strings.Replace(g.Endpoint, "http:", "https:", 1)
	nobody := g.S3()
	nobody.Endpoint = "http://127.0.0.1:1"
	cases := map[string]struct {
		s        archive.S3
		location string
		trouble  archive.Trouble
		text     string
	}{
		"access key":  {with(g, s3test.Region, "somebody", s3test.Secret), name, archive.TroubleCredentials, "does not know the access key"},
		"secret":      {with(g, s3test.Region, s3test.AccessKey, "hunter2"), name, archive.TroubleCredentials, "the secret does not belong"},
		"secret file": {failing(g), name, archive.TroubleCredentials, "the access key cannot be read: no such file"},
		"bucket":      {g.S3(), "no-such-bucket", archive.TroubleBucket, "there is no bucket no-such-bucket at " + g.Endpoint},
		"region":      {with(g, "eu-9", s3test.AccessKey, s3test.Secret), name, archive.TroubleRegion, "archive.s3.region is eu-9"},
		"nobody":      {nobody, name, archive.TroubleEndpoint, "http://127.0.0.1:1 does not answer: "},
		"TLS":         {notTLS, name, archive.TroubleEndpoint, "does not speak TLS"},
	}
	for what, c := range cases {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			l := open(t, c.s, "s3://"+c.location+"/prefix")
			if c.trouble == archive.TroubleEndpoint { // each of the others would try as long
				var s3 *archive.S3Error
				if err := l.Reach(t.Context()); !errors.As(err, &s3) || s3.Trouble != c.trouble || !strings.Contains(err.Error(), c.text) || s3.Cure == "" {
					t.Errorf("%v", err)
				}
				return
			}
			_, opened := l.Open(t.Context(), "a")
			var listed error
			for _, err := range l.List(t.Context(), "a") {
				listed = err
			}
			for verb, err := range map[string]error{
				"reach": l.Reach(t.Context()), "open": opened, "list": listed, "put": l.Put(t.Context(), "a", stored(t, []byte("a"))),
				"delete": l.Delete(t.Context(), "a"),
			} {
				var s3 *archive.S3Error
				if !errors.As(err, &s3) || s3.Trouble != c.trouble || !strings.Contains(err.Error(), c.text) || s3.Cure == "" {
					t.Errorf("%s: %v", verb, err)
				} else if strings.Contains(fmt.Sprintf("%+v %#v", err, err), "hunter2") {
					t.Errorf("%s shows a secret", verb)
				}
			}
		})
	}
}

func with(g *s3test.Gateway, region, id, secret string) archive.S3 {
	s := g.S3()
	s.Region, s.Keys = region, s3test.Keys(id, secret)
	return s
}

func failing(g *s3test.Gateway) archive.S3 {
	s := g.S3()
	s.Keys = func(context.Context) (string, string, error) { return "", "", errors.New("no such file") }
	return s
}

// Without keys in the settings those of AWS's variables count; without any there are none.
func TestKeysComeFromTheEnvironment(t *testing.T) {
	g := s3test.Start(t)
	name, _ := g.Bucket(t)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(t.TempDir(), "none"))
	s := g.S3()
	s.Keys = nil
	t.Setenv("AWS_ACCESS_KEY_ID", s3test.AccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", s3test.Secret)
	if err := open(t, s, "s3://"+name).Reach(t.Context()); err != nil {
		t.Error(err)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	err := open(t, s, "s3://"+name).Reach(t.Context())
	var s3 *archive.S3Error
	if !errors.As(err, &s3) || s3.Trouble != archive.TroubleCredentials || !strings.Contains(s3.Cause, "there are no credentials") {
		t.Errorf("%v", err)
	}
}

// The role of a container gives keys, and new ones once the endpoint has refused those that it gave before.
func TestKeysComeFromTheRoleOfAContainer(t *testing.T) {
	g := s3test.Start(t)
	name, _ := g.Bucket(t)
	var secret atomic.Value
	secret.Store("the-old-one")
	role := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "the-token" {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		_, _ = fmt.Fprintf(w, `{"Code": "Success", "AccessKeyId": %q, "SecretAccessKey": %q, "Expiration": %q}`,
			s3test.AccessKey, secret.Load(), time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	}))
	t.Cleanup(role.Close)
	for _, v := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY", "AWS_SECRET_KEY"} {
		t.Setenv(v, "")
	}
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(t.TempDir(), "none"))
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", role.URL)
	t.Setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "the-token")
	s := g.S3()
	s.Keys = nil
	l := open(t, s, "s3://"+name)
	var s3 *archive.S3Error
	if err := l.Reach(t.Context()); !errors.As(err, &s3) || s3.Trouble != archive.TroubleCredentials {
		t.Fatalf("a role with a wrong secret: %v", err)
	}
	secret.Store(s3test.Secret)
	if err := l.Reach(t.Context()); err != nil {
		t.Error(err)
	}
}

// A secret that was replaced is read again after the endpoint has refused the old one.
func TestAReplacedSecretNeedsNoRestart(t *testing.T) {
	t.Parallel()
	g := s3test.Start(t)
	name, _ := g.Bucket(t)
	var secret atomic.Value
	secret.Store("the-old-one")
	s := g.S3()
	s.Keys = func(context.Context) (string, string, error) { return s3test.AccessKey, secret.Load().(string), nil }
	l := open(t, s, "s3://"+name)
	if err := l.Reach(t.Context()); err == nil {
		t.Fatal("the gateway took a wrong secret")
	}
	secret.Store(s3test.Secret)
	if err := l.Reach(t.Context()); err != nil {
		t.Error(err)
	}
}

// Requests that are dropped, cut off in the middle, held up or answered 503 are made again; a large file goes on where it broke.
func TestRequestsThatFailForAWhileAreMadeAgain(t *testing.T) {
	t.Parallel()
	g := s3test.Start(t)
	name, _ := g.Bucket(t)
	text := bytes.Repeat([]byte("0123456789abcdef"), 100_000)
	for what, fault := range map[string]s3test.Fault{
		"drop": s3test.Drop, "break": s3test.Break, "busy": s3test.Busy, "hang": s3test.Hang, "slow": s3test.Slow,
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			p := s3test.NewProxy(t, g)
			var requests atomic.Int64
			p.Judge(func(*http.Request) s3test.Fault {
				if requests.Add(1)%3 != 0 {
					return fault
				}
				return s3test.Pass
			})
			s := g.S3()
			s.Endpoint, s.Stall = p.Endpoint, 300*time.Millisecond
			l := open(t, s, "s3://"+name+"/"+what)
			if err := l.Put(t.Context(), "a/file", stored(t, text)); err != nil {
				t.Fatal(err)
			}
			if got, err := readAll(t.Context(), l, "a/file"); err != nil || !bytes.Equal(got, text) {
				t.Errorf("%d of %d bytes, %v", len(got), len(text), err)
			}
			found := 0
			for _, err := range l.List(t.Context(), "a") {
				if err != nil {
					t.Fatal(err)
				}
				found++
			}
			if found != 1 {
				t.Errorf("%d files listed", found)
			}
			if err := l.Delete(t.Context(), "a/file"); err != nil {
				t.Error(err)
			}
			if fault != s3test.Slow && requests.Load() < 8 {
				t.Errorf("%d requests: nothing failed", requests.Load())
			}
		})
	}
}

func TestAStoreThatStaysBusyIsGivenUp(t *testing.T) {
	t.Parallel()
	g := s3test.Start(t)
	name, _ := g.Bucket(t)
	p := s3test.NewProxy(t, g)
	p.Judge(func(*http.Request) s3test.Fault { return s3test.Busy })
	s := g.S3()
	s.Endpoint = p.Endpoint
	err := open(t, s, "s3://"+name).Reach(t.Context())
	if err == nil || !strings.Contains(err.Error(), "SlowDown (HTTP status 503): Reduce your request rate.") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := open(t, s, "s3://"+name).Reach(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}
