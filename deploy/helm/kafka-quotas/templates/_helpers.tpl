{{/* The beginning of all names: the release's, once. */}}
{{- define "kafka-quotas.name" -}}
{{- if contains "kafka-quotas" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-kafka-quotas" .Release.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{/* Labels by which pods are selected. Call with a dict of root and part. */}}
{{- define "kafka-quotas.selector" -}}
app.kubernetes.io/name: kafka-quotas
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end }}

{{- define "kafka-quotas.labels" -}}
{{ include "kafka-quotas.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end }}

{{- define "kafka-quotas.configMap" -}}
{{- if .Values.manifests.existingConfigMap }}{{ .Values.manifests.existingConfigMap }}{{ else }}{{ include "kafka-quotas.name" . }}-manifests{{ end }}
{{- end }}

{{- define "kafka-quotas.image" -}}
{{- if .Values.image.digest }}{{ .Values.image.repository }}@{{ .Values.image.digest }}{{ else }}{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{/* What the pods of run and drift have in common, beside their container. */}}
{{- define "kafka-quotas.pod" -}}
automountServiceAccountToken: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile: {type: RuntimeDefault}
volumes:
  - name: manifests
    configMap: {name: {{ include "kafka-quotas.configMap" . }}}
  {{- if .Values.clientSecret }}
  - name: client
    secret: {secretName: {{ .Values.clientSecret }}, defaultMode: 288}
  {{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{ toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "kafka-quotas.container" -}}
image: {{ include "kafka-quotas.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
volumeMounts:
  - {name: manifests, mountPath: /manifests, readOnly: true}
  {{- if .Values.clientSecret }}
  - {name: client, mountPath: /secrets, readOnly: true}
  {{- end }}
{{- end }}
