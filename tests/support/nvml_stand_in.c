/* A library with the names and signatures of NVIDIA's nvml.h that are called, and one GPU. */
#include <stdlib.h>
#include <string.h>

static unsigned long long energy_mj = 1000000;

static int failing(const char *what)
{
    const char *wish = getenv("NVML_STAND_IN");
    return wish != NULL && strcmp(wish, what) == 0;
}

const char *nvmlErrorString(int result)
{
    return result == 9 ? "Driver Not Loaded" : result == 3 ? "Not Supported" : "Unknown Error";
}

int nvmlInit_v2(void) { return failing("init") ? 9 : 0; }

int nvmlDeviceGetCount_v2(unsigned int *count)
{
    *count = 1;
    return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **device)
{
    *device = &energy_mj;
    return index == 0 ? 0 : 2;
}

int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *energy)
{
    if (device != &energy_mj)
        return 2;
    if (failing("energy"))
        return 3;
    energy_mj += 250;
    *energy = energy_mj;
    return 0;
}

int nvmlDeviceGetPowerUsage(void *device, unsigned int *power)
{
    static unsigned int milliwatts = 71940;
    *power = device == &energy_mj ? milliwatts++ : 0;
    return 0;
}

int nvmlDeviceGetMigMode(void *device, unsigned int *current, unsigned int *pending)
{
    *current = *pending = failing("mig");
    return device == &energy_mj ? 0 : 2;
}
