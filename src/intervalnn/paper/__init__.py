"""The paper: its networks, its experiments, its appendix on likelihoods, and the demo."""
