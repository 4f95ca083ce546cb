"""The construction of SoFa's probes from a corpus of stereotypes (Marchiori Manerba et al. 2023,
section 3.1 and appendix B)."""
