collect_ignore = ["monai_zoo.py", "transformers_zoo.py"]  # no doctests, and no import where the package is absent
