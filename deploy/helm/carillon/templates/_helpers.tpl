{{- define "carillon.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "carillon.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "carillon.labels" -}}
{{ include "carillon.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "carillon.image" -}}
{{- with .Values.image }}{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}{{ end }}
{{- end }}

{{/* A value of a setting as TOML: JSON is, but for numbers that YAML reads as floating. */}}
{{- define "carillon.toml" -}}
{{- if and (kindIs "float64" .) (eq . (floor .)) }}{{ int64 . }}
{{- else if kindIs "map" . }}{ {{- $first := true }}{{ range $key, $value := . }}{{ if not $first }}, {{ end }}{{ $first = false }}{{ toJson $key }} = {{ include "carillon.toml" $value }}{{ end -}} }
{{- else if kindIs "slice" . }}[{{ range $n, $value := . }}{{ if $n }}, {{ end }}{{ include "carillon.toml" $value }}{{ end }}]
{{- else }}{{ toJson . }}{{ end -}}
{{- end }}

{{/* Where the engines are: those that are given, or those of the trial. */}}
{{- define "carillon.store" -}}
{{- if .Values.trial.enabled }}postgresql://carillon@{{ include "carillon.name" . }}-postgresql/carillon?sslmode=disable{{ else }}{{ .Values.store.url }}{{ end }}
{{- end }}
{{- define "carillon.nats" -}}
{{- if .Values.trial.enabled }}nats://{{ include "carillon.name" . }}-nats:4222{{ else }}{{ .Values.cell.nats }}{{ end }}
{{- end }}
{{- define "carillon.cellSecret" -}}
{{- if .Values.trial.enabled }}{{ include "carillon.name" . }}-trial{{ else }}{{ .Values.cell.secret.name }}{{ end }}
{{- end }}
{{- define "carillon.storeSecret" -}}
{{- if .Values.trial.enabled }}{{ include "carillon.name" . }}-trial{{ else }}{{ .Values.store.passwordSecret.name }}{{ end }}
{{- end }}

{{/* What cannot work is refused here, and not by a pod that does not start. */}}
{{- define "carillon.check" -}}
{{- $pods := 0 }}{{ range .Values.groups }}{{ $pods = add $pods .replicas }}{{ end }}
{{- $nats := include "carillon.nats" . }}
{{- if and (gt (int $pods) 1) (not $nats) }}{{ fail "several pods are a cell: set store.url and cell.nats, or trial.enabled" }}{{ end }}
{{- if and $nats (not (include "carillon.store" .)) }}{{ fail "a cell needs store.url" }}{{ end }}
{{- if and $nats (not (include "carillon.cellSecret" .)) }}{{ fail "a cell needs cell.secret.name" }}{{ end }}
{{- if and .Values.autoscaler.enabled (not (hasKey .Values.groups .Values.autoscaler.group)) }}{{ fail "autoscaler.group is no group" }}{{ end }}
{{- if and .Values.autoscaler.enabled (not .Values.autoscaler.source) }}{{ fail "the autoscaler needs autoscaler.source: docs/book/autoscaler.md" }}{{ end }}
{{- end }}
