"""Second, independently written implementations that the project's own are compared with.

They follow the specification only and share no code with `finskillbench`.
"""
