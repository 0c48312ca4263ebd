package s3test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/archive"
)

// The credentials and the region of every gateway.
const (
	AccessKey = "kappactltest"
	Secret    = "not-a-secret-of-anybody" //nolint:gosec // of a gateway on this machine's loopback
	Region    = "test-1"
)

// Domain is below which a gateway takes the first label of a host's name for a bucket.
const Domain = "s3.test"

// Variable names the gateway of a test run, as URL and folder, for its processes.
const Variable = "KAPPACTL_TEST_S3"

// Gateway is a running gateway.
type Gateway struct {
	Endpoint string // http://HOST:PORT
	Folder   string // each folder in it is a bucket

	stdin io.Closer
	cmd   *exec.Cmd
}

// shared is the one gateway of this test process. The mutex owns it.
var shared struct {
	sync.Mutex
	gateway *Gateway
	err     error
}

// Start returns the gateway of this test run, or of this process. It skips the test on a developer's machine that
// cannot build it.
func Start(t testing.TB) *Gateway {
	t.Helper()
	if endpoint, folder, ok := strings.Cut(os.Getenv(Variable), " "); ok {
		return &Gateway{Endpoint: endpoint, Folder: folder}
	}
	shared.Lock()
	defer shared.Unlock()
	if shared.gateway == nil && shared.err == nil {
		shared.gateway, shared.err = Launch()
	}
	switch err := shared.err; {
	case Skipped(err):
		t.Skipf("SKIPPED, not tested against S3: %v", err)
	case err != nil:
		t.Fatalf("start an S3 gateway: %v", err)
	}
	return shared.gateway
}

// Stop ends the gateway of this process, if there is one.
func Stop() {
	shared.Lock()
	defer shared.Unlock()
	if shared.gateway != nil {
		shared.gateway.Stop()
		shared.gateway = nil
	}
}

// Skipped reports whether err is that of a machine which cannot run a gateway, where that is no failure.
func Skipped(err error) bool { return errors.Is(err, errNotBuilt) && os.Getenv("CI") != "true" }

// Setting is Variable with the gateway, for the environment of a process.
func (g *Gateway) Setting() string { return Variable + "=" + g.Endpoint + " " + g.Folder }

// S3 are the settings that reach the gateway.
func (g *Gateway) S3() archive.S3 {
	return archive.S3{Endpoint: g.Endpoint, Region: Region, Keys: Keys(AccessKey, Secret)}
}

// Bucket makes a bucket and returns its name and its folder.
func (g *Gateway) Bucket(t testing.TB) (name, folder string) {
	t.Helper()
	folder, err := os.MkdirTemp(g.Folder, "bucket") //nolint:usetesting // buckets are folders of the gateway's
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) }) // the gateway's folder goes anyhow
	return filepath.Base(folder), folder
}

// Launch starts a gateway in a folder of its own. It ends by Stop, or when this process ends.
func Launch() (*Gateway, error) {
	program, err := install()
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "kappactl-s3-")
	if err != nil {
		return nil, err
	}
	// The shell ends the gateway when this process does: its end of the pipe closes then.
	cmd := exec.Command("sh", "-c", `"$@" </dev/null & pid=$!; read -r _; kill -9 $pid; rm -rf "$FOLDER"`, "sh", program,
		"--port", address,
		"--region", Region, "--virtual-domain", Domain, "--health", "/health", "--quiet", "--keep-alive", "posix", folder)
	cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+AccessKey, "ROOT_SECRET_KEY="+Secret, "FOLDER="+folder)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	g := &Gateway{Endpoint: "http://" + address, Folder: folder, stdin: stdin, cmd: cmd}
	if err := g.ready(); err != nil {
		g.Stop()
		return nil, err
	}
	return g, nil
}

// ready waits until the gateway answers.
func (g *Gateway) ready() error {
	end := time.After(30 * time.Second)
	for {
		answer, err := http.Get(g.Endpoint + "/health")
		if err == nil {
			return answer.Body.Close()
		}
		select {
		case <-end:
			return fmt.Errorf("versitygw does not answer: %w", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Stop ends the gateway and removes its folder.
func (g *Gateway) Stop() {
	_ = g.stdin.Close()
	_ = g.cmd.Wait() // its code is that of the kill
}
