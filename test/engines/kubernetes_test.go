package engines

import (
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	psa "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

func podFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(deployed("kubernetes/pod*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no pods: %v", err)
	}
	return files
}

// parsePod decodes as an API server does that was asked for strict validation: an
// unknown or repeated field is an error.
func parsePod(t *testing.T, file string) *corev1.Pod {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	decoder := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Yaml: true, Strict: true})
	object, _, err := decoder.Decode([]byte(readFile(t, file)), nil, nil)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	pod, ok := object.(*corev1.Pod)
	if !ok {
		t.Fatalf("%s is a %T", file, object)
	}
	return pod
}

// violations are what the admission plugin finds wrong under the "restricted" standard.
func violations(t *testing.T, pod *corev1.Pod) []string {
	t.Helper()
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, result := range evaluator.EvaluatePod(psa.LevelVersion{Level: psa.LevelRestricted, Version: psa.LatestVersion()}, &pod.ObjectMeta, &pod.Spec) {
		if !result.Allowed {
			found = append(found, result.ForbiddenReason+": "+result.ForbiddenDetail)
		}
	}
	return found
}

func TestKubernetesManifests(t *testing.T) {
	for _, file := range podFiles(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			pod := parsePod(t, file)
			if found := violations(t, pod); len(found) > 0 {
				t.Errorf("not fit for \"restricted\": %s", strings.Join(found, "; "))
			}
			// The check itself has to be able to fail.
			pod.Spec.Containers[0].SecurityContext.Capabilities = nil
			if found := violations(t, pod); len(found) != 1 || !strings.Contains(found[0], "capabilities") {
				t.Errorf("a container that keeps its capabilities passes: %q", found)
			}
			for _, c := range pod.Spec.Containers {
				if len(c.Command) == 0 || filepath.Base(c.Command[0]) != "fdinit" {
					t.Errorf("container %s does not start under fdinit: %q", c.Name, c.Command)
				}
			}
		})
	}
}
