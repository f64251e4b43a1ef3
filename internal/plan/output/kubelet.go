// SPDX-License-Identifier: Apache-2.0
package output

const kubeletPath = "/etc/kubernetes/kubelet.conf.d/90-corelane.conf"

// kubelet reserves all CPUs except the guests', so that pods do not get a worker's CPU. Pods without exclusive CPUs
// are kept off reserved CPUs only with strict reservation (Kubernetes 1.32).
func kubelet(v *view) ([]File, error) {
	text := v.note() + `# Stop the kubelet, remove /var/lib/kubelet/cpu_manager_state, start it.
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cpuManagerPolicy: static
cpuManagerPolicyOptions:
  full-pcpus-only: "true"
  strict-cpu-reservation: "true"
topologyManagerPolicy: single-numa-node
` + pairs("", "reservedSystemCPUs", v.all.Without(v.guests).String())
	return []File{{kubeletPath, "drop-in of the kubelet (--config-dir)", text, false}}, nil
}
