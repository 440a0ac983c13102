/* One product and one sum, of four numbers. There is nothing to differentiate. */

void value(const double *arguments, double *results)
{
    for (int i = 0; i < 4; i++)
        results[i] = arguments[i] * arguments[4 + i] + 1.0;
}
