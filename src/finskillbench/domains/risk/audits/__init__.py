"""What `finskillbench audit` asks of this domain: cheats, ladders of answers, labels held against their inputs."""
