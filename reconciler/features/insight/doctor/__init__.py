"""Whether manifests, a cluster, this machine and a traffic source are fit for work, with what to do about the rest."""
