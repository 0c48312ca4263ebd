package e2e_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.yaml.in/yaml/v3"

	"github.com/kappactl/kappactl/internal/config"
	"github.com/kappactl/kappactl/internal/kafkatest"
	"github.com/kappactl/kappactl/internal/pgtest"
)

func packaging(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../packaging/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// understands runs the command line with --help, which refuses flags and commands that are not there.
func understands(t *testing.T, args []string) {
	t.Helper()
	bin, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(bin, append(slices.Clone(args), "--help")...).CombinedOutput(); err != nil {
		t.Errorf("kappactl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// known says whether a variable is one that kappactl or PostgreSQL's clients read.
func known(variable string) bool {
	return variable == "PGPASSWORD" || slices.ContainsFunc(config.Table(), func(o config.Setting) bool { return o.Env == variable })
}

func TestTheImageIsBuiltInStagesAndIsNotRoot(t *testing.T) {
	text := packaging(t, "Dockerfile")
	if n := strings.Count("\n"+text, "\nFROM "); n != 2 {
		t.Errorf("%d stages", n)
	}
	for _, from := range regexp.MustCompile(`(?m)^FROM (\S+)`).FindAllStringSubmatch(text, -1) {
		if _, tag, ok := strings.Cut(from[1], ":"); !ok || tag == "latest" {
			t.Errorf("image %s without a version", from[1])
		}
	}
	user := regexp.MustCompile(`(?m)^USER (\d+):(\d+)$`).FindStringSubmatch(text)
	if user == nil || user[1] == "0" || strings.Contains(text, "PASSWORD") {
		t.Errorf("user %v", user)
	}
	command := regexp.MustCompile(`(?m)^CMD (\[.*\])$`).FindStringSubmatch(text)
	var args []string
	if err := yaml.Unmarshal([]byte(command[1]), &args); err != nil {
		t.Fatal(err)
	}
	understands(t, args)
}

// TestTheStepsOfTheImageMakeOne runs the Dockerfile's steps without a container runtime, and the binary as the image's user in a
// root folder of its own.
func TestTheStepsOfTheImageMakeOne(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED with -short: it builds the binary anew")
	}
	root := filepath.Join(t.TempDir(), "root")
	cmd := exec.Command("../../packaging/check-image.sh", root)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil || !strings.HasPrefix(string(out), "kappactl checked ") {
		t.Fatalf("check-image.sh: %v\n%s%s", err, out, &stderr)
	}
	if os.Getuid() != 0 {
		t.Log("only root may enter the image's root folder: an agent was not run there")
		return
	}
	// An agent in the image's root folder, as the image's user, does the work of a deploy.
	brokers := kafkatest.Fake(t)
	w := newWorld(t, brokers)
	topic := clicksTopic(t, brokers, 20_000)
	admin, err := pgx.ParseConfig(w.dsn)
	if err != nil {
		t.Fatal(err)
	}
	agent := exec.Command("/usr/local/bin/kappactl", "serve", "--http", "127.0.0.1:0")
	agent.Dir = "/"
	agent.Env = []string{
		"KAPPACTL_BROKERS=" + strings.Join(brokers, ","), "KAPPACTL_DSN=" + pgtest.As(w.dsn, admin.User, admin.Password), "KAPPACTL_TEMP=/tmp",
	}
	agent.SysProcAttr = &syscall.SysProcAttr{
		Chroot: root, Credential: &syscall.Credential{Uid: 10001, Gid: 10001}, Pdeathsig: syscall.SIGKILL,
	}
	agent.Stderr = &stderr
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	w.ok("deploy", w.file("v1.yaml", fmt.Sprintf(clicksJob, topic, 0)), "--wait-agent", "3m")
	w.equal("clicks")
	if err := agent.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := agent.Wait(); err != nil {
		t.Errorf("the agent ended with %v\n%s", err, &stderr)
	}
	if left, err := os.ReadDir(filepath.Join(root, "tmp")); err != nil || len(left) != 0 {
		t.Errorf("it left %v in /tmp, %v", left, err)
	}
}

type composeService struct {
	Image       string
	Build       struct{ Context, Dockerfile string }
	Command     []string
	Environment map[string]string
	Ports       []string
	Volumes     []string
	Healthcheck struct{ Test []string }
	DependsOn   map[string]struct{ Condition string } `yaml:"depends_on"`
	ReadOnly    bool                                  `yaml:"read_only"`
	CapDrop     []string                              `yaml:"cap_drop"`
}

func TestTheComposeFileHoldsTogether(t *testing.T) {
	var file struct {
		Services map[string]composeService
		Volumes  map[string]any
	}
	if err := yaml.Unmarshal([]byte(packaging(t, "compose.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"kafka", "postgres", "init", "agent"} {
		if _, ok := file.Services[name]; !ok {
			t.Errorf("no service %s", name)
		}
	}
	for name, s := range file.Services {
		for _, p := range s.Ports {
			if !strings.HasPrefix(p, "127.0.0.1:") {
				t.Errorf("%s: port %s is open to the network", name, p)
			}
		}
		for _, v := range s.Volumes {
			if volume, _, _ := strings.Cut(v, ":"); !hasKey(file.Volumes, volume) {
				t.Errorf("%s: volume %s is not declared", name, volume)
			}
		}
		for variable, value := range s.Environment {
			if strings.Contains(variable, "PASSWORD") && !strings.HasPrefix(value, "${KAPPACTL_DB_PASSWORD:?") {
				t.Errorf("%s: %s stands in the file", name, variable)
			}
		}
		for other, d := range s.DependsOn {
			needed, ok := file.Services[other]
			if !ok || d.Condition == "service_healthy" && len(needed.Healthcheck.Test) == 0 {
				t.Errorf("%s waits for %s, which is not there or has no health check", name, other)
			}
		}
		if s.Image != "kappactl" {
			if _, tag, ok := strings.Cut(s.Image, ":"); !ok || tag == "latest" {
				t.Errorf("%s: image %s without a version", name, s.Image)
			}
			continue
		}
		checkOwnService(t, name, s)
	}
}

// checkOwnService looks at a service that runs kappactl.
func checkOwnService(t *testing.T, name string, s composeService) {
	t.Helper()
	if _, err := os.Stat(filepath.Join("../../packaging", s.Build.Context, s.Build.Dockerfile)); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	if !s.ReadOnly || !slices.Contains(s.CapDrop, "ALL") {
		t.Errorf("%s has more rights than it needs", name)
	}
	for variable := range s.Environment {
		if !known(variable) {
			t.Errorf("%s: nothing reads %s", name, variable)
		}
	}
	understands(t, s.Command)
	if test := s.Healthcheck.Test; len(test) > 2 {
		understands(t, test[2:])
	}
}

// TestTheHealthCheckOfTheComposeFileAsksTheAgent: "status" succeeds while another agent, or none, is alive.
func TestTheHealthCheckOfTheComposeFileAsksTheAgent(t *testing.T) {
	var file struct{ Services map[string]composeService }
	if err := yaml.Unmarshal([]byte(packaging(t, "compose.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	check := file.Services["agent"].Healthcheck.Test
	if len(check) != 2 || check[0] != "CMD-SHELL" || !strings.Contains(check[1], "127.0.0.1/8080") {
		t.Fatalf("the check is %q", check)
	}
	var code atomic.Int32
	code.Store(http.StatusOK)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			t.Errorf("it asks %s", r.URL.Path)
		}
		w.WriteHeader(int(code.Load()))
	}))
	ask := func() error {
		address := strings.Replace(strings.TrimPrefix(server.URL, "http://"), ":", "/", 1)
		return exec.CommandContext(t.Context(), "sh", "-c", strings.Replace(check[1], "127.0.0.1/8080", address, 1)).Run()
	}
	if err := ask(); err != nil {
		t.Errorf("an agent that is ready: %v", err)
	}
	code.Store(http.StatusServiceUnavailable)
	if ask() == nil {
		t.Error("an agent that is not ready is called healthy")
	}
	server.Close()
	if ask() == nil {
		t.Error("no agent is called healthy")
	}
}

func hasKey(m map[string]any, key string) bool { _, ok := m[key]; return ok }

func TestTheServiceUnitIsValid(t *testing.T) {
	text := packaging(t, "kappactl.service")
	start := regexp.MustCompile(`(?m)^ExecStart=/usr/local/bin/kappactl (.*)$`).FindStringSubmatch(text)
	if start == nil {
		t.Fatal("no ExecStart of /usr/local/bin/kappactl")
	}
	understands(t, strings.Fields(start[1]))
	for _, e := range regexp.MustCompile(`(?m)^#?\s*Environment=(\w+)=`).FindAllStringSubmatch(text, -1) {
		if !known(e[1]) {
			t.Errorf("nothing reads %s", e[1])
		}
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Log("systemd-analyze is not there: the unit was not verified by systemd itself")
		return
	}
	bin, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	unit := filepath.Join(t.TempDir(), "kappactl.service")
	if err := os.WriteFile(unit, []byte(strings.ReplaceAll(text, "/usr/local/bin/kappactl", bin)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(analyze, "verify", unit).CombinedOutput(); err != nil || strings.Contains(string(out), "kappactl.service") {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}
