"""What a model is, whatever file it came in: architecture, weights, tokenizer.

`open_model` reads a GGUF file or a Hugging Face folder into one canonical form, from which every
framework's artifact is made. Nothing here knows of harness or runners; numpy is all that is needed
to import it.
"""
