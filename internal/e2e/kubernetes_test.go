package e2e_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// objects are the Kubernetes objects in a file of packaging/kubernetes.
func objects(t *testing.T, name string) (out []map[string]any) {
	t.Helper()
	d := yaml.NewDecoder(strings.NewReader(packaging(t, "kubernetes/"+name)))
	for {
		var one map[string]any
		if d.Decode(&one) != nil {
			return out
		}
		out = append(out, one)
	}
}

// valueAt is the value at a path of keys and indexes.
func valueAt(t *testing.T, v any, path ...any) any {
	t.Helper()
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[p]
		case int:
			l, _ := v.([]any)
			if p >= len(l) {
				t.Fatalf("no %v", path)
			}
			v = l[p]
		}
	}
	return v
}

// kubernetesDecoder builds scripts/kubernetes, once for each version of it into the user's cache: the API's types are large.
func kubernetesDecoder(t *testing.T) string {
	t.Helper()
	const module = "../../scripts/kubernetes"
	sum := sha256.New()
	for _, name := range []string{"go.sum", "main.go"} {
		text, err := os.ReadFile(filepath.Join(module, name))
		if err != nil {
			t.Fatal(err)
		}
		sum.Write(text)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = t.TempDir()
	}
	program := filepath.Join(cache, "kappactl", "bin", "kubernetes-"+hex.EncodeToString(sum.Sum(nil)[:8]))
	if _, err := os.Stat(program); err == nil {
		return program
	}
	build := exec.Command("go", "build", "-o", program, ".")
	build.Dir, build.Env = module, append(os.Environ(), "GOFLAGS=-trimpath", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: the API's types cannot be built here; they need the module proxy the first time: %v\n%s", err, out)
	}
	return program
}

// TestTheKubernetesObjectsDecodeStrictly decodes them by the API's own Go types, in a module of its own.
func TestTheKubernetesObjectsDecodeStrictly(t *testing.T) {
	t.Parallel()
	decoder := kubernetesDecoder(t)
	decode := func(names ...string) (string, error) {
		out, err := exec.Command(decoder, names...).CombinedOutput()
		return string(out), err
	}
	names := []string{}
	for _, n := range []string{"deployment", "disruption", "service", "settings", "deploy-job"} {
		names = append(names, "../../packaging/kubernetes/"+n+".yaml")
	}
	out, err := decode(names...)
	if want := "Deployment\nPodDisruptionBudget\nService\nConfigMap\nJob\n"; err != nil || out != want {
		t.Errorf("%v: %s, want %s", err, out, want)
	}
	// A misspelt field is found, so the test shows something.
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	text := strings.Replace(packaging(t, "kubernetes/deployment.yaml"), "readOnlyRootFilesystem", "readonlyRootFilesystem", 1)
	if err := os.WriteFile(bad, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := decode(bad); err == nil || !strings.Contains(out, "readonlyRootFilesystem") {
		t.Errorf("a misspelt field is taken: %s", out)
	}
}

// TestTheKubernetesObjectsFitOneAnother checks what the API's types cannot: names, labels and the command lines.
func TestTheKubernetesObjectsFitOneAnother(t *testing.T) {
	t.Parallel()
	base := objects(t, "kustomization.yaml")[0]
	resources, _ := valueAt(t, base, "resources").([]any)
	files, err := filepath.Glob("../../packaging/kubernetes/*.yaml")
	if err != nil || len(files) != len(resources)+2 { // kustomization.yaml itself, and the Job
		t.Errorf("the base lists %v of %v", resources, files)
	}
	agents, job := objects(t, "deployment.yaml")[0], objects(t, "deploy-job.yaml")[0]
	labels, _ := valueAt(t, agents, "spec", "template", "metadata", "labels").(map[string]any)
	for _, selector := range []any{
		valueAt(t, agents, "spec", "selector", "matchLabels"), valueAt(t, objects(t, "disruption.yaml")[0], "spec", "selector", "matchLabels"),
		valueAt(t, objects(t, "service.yaml")[0], "spec", "selector"),
	} {
		wanted, _ := selector.(map[string]any)
		for k, v := range wanted {
			if labels[k] != v {
				t.Errorf("%s=%v selects no agent: %v", k, v, labels)
			}
		}
	}
	settings, _ := valueAt(t, objects(t, "settings.yaml")[0], "data", "kappactl.yaml").(string)
	path := filepath.Join(t.TempDir(), "kappactl.yaml")
	if err := os.WriteFile(path, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, o := range []map[string]any{agents, job} {
		pod, _ := valueAt(t, o, "spec", "template", "spec").(map[string]any)
		container := valueAt(t, pod, "containers", 0)
		for _, path := range [][]any{
			{"securityContext", "runAsNonRoot"}, {"containers", 0, "securityContext", "readOnlyRootFilesystem"},
		} {
			if valueAt(t, pod, path...) != true {
				t.Errorf("%v is not set", path)
			}
		}
		var args []string
		list, _ := valueAt(t, container, "args").([]any)
		for _, a := range list {
			word, _ := a.(string)
			args = append(args, strings.ReplaceAll(word, "/etc/kappactl/kappactl.yaml", path))
		}
		understands(t, args)
		volumes := map[any]bool{}
		all, _ := valueAt(t, pod, "volumes").([]any)
		for _, v := range all {
			volumes[valueAt(t, v, "name")] = true
		}
		mounts, _ := valueAt(t, container, "volumeMounts").([]any)
		for _, m := range mounts {
			if !volumes[valueAt(t, m, "name")] {
				t.Errorf("no volume %v", valueAt(t, m, "name"))
			}
		}
		if len(mounts) != len(volumes) || !slices.Contains(args, "--config") {
			t.Errorf("%d mounts of %d volumes, %v", len(mounts), len(volumes), args)
		}
	}
	bin, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	show := exec.Command(bin, "context", "show", "--config", path)
	show.Env = []string{"HOME=" + t.TempDir()}
	if out, err := show.CombinedOutput(); err != nil || !strings.Contains(string(out), "/var/cache/kappactl") {
		t.Errorf("the settings: %v\n%s", err, out)
	}
}
