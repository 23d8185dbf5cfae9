# Loads the plugin of the GPU, where there is one.
import jax

print("jax", jax.__version__, jax.devices())
